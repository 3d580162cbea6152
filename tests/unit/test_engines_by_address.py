"""Engines of SQLAlchemy that a rule names by their address, made with what users give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine

from antipode_shims.mysql._clients import process_wide as of_mysql
from antipode_shims.postgresql._clients import process_wide as of_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = [
    ("mysql", "mysql+pymysql", of_mysql),
    ("postgresql", "postgresql+psycopg", of_postgresql),
]


@pytest.fixture(params=STORES, ids=lambda each: each[0])
def named(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """An address that a rule names, and what goes by rules; nothing listens there."""
    store, dialect, module = request.param
    module.instrument({"shop": f"{store}://127.0.0.1:1"})
    yield f"{dialect}://app@127.0.0.1:1/app", module
    module.uninstrument()


def test_what_an_engine_takes(named: tuple[str, Any]) -> None:
    """SQLAlchemy reads off the engine's constructor which arguments there are: all are taken."""
    url, wide = named
    given: dict[str, Any] = {"echo": False, "logging_name": "shop", "hide_parameters": True}
    engine = create_engine(url, execution_options={"a": 1}, query_cache_size=7, **given)
    assert engine.get_execution_options()["a"] == 1
    assert (engine.logging_name, engine.hide_parameters) == ("shop", True)
    assert engine in wide.instrumented.implied
    engine.dispose()
