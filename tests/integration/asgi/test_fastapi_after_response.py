"""What FastAPI does after a response: no answer holds it, it is counted, and how to cure it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import pytest

import antipode
from antipode import Lineage
from antipode.integrations.asgi import instrument_app
from tests.integration._ingress import ADDED, asgi, ask, late, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from fastapi import BackgroundTasks, Depends, FastAPI

SCOPED = "scope" in inspect.signature(Depends).parameters


def session() -> Iterator[Any]:
    """A dependency that commits when FastAPI is done with it, as database sessions do."""
    yield "session"
    antipode.append(ADDED)


def test_a_dependency_with_yield_commits_after_the_response() -> None:
    """FastAPI goes on behind the `yield` once the response is sent: the write is counted."""
    app = instrument_app(FastAPI())

    @app.get("/")
    def write(held: Annotated[Any, Depends(session)]) -> None:
        """The commit is in the dependency."""

    before = late()
    with asgi(app) as port:
        answer = ask(port, headers=sent())
    assert answer.lineage == Lineage()
    assert late() == before + 1


@pytest.mark.skipif(not SCOPED, reason="FastAPI before 0.121 has no scopes of dependencies")
def test_a_dependency_of_the_function_commits_before_the_response() -> None:
    """The cure: with `scope="function"` it is done before the response starts."""
    app = instrument_app(FastAPI())

    @app.get("/")
    def write(held: Annotated[Any, Depends(session, scope="function")]) -> None:
        """The commit is in the dependency."""

    before = late()
    with asgi(app) as port:
        answer = ask(port)
    assert answer.lineage == Lineage([ADDED])
    assert late() == before


def test_a_background_task_writes_after_the_response() -> None:
    """It is counted; who needs to know of it does it before, or promises it."""
    app = instrument_app(FastAPI())

    @app.get("/")
    def write(tasks: BackgroundTasks) -> None:
        tasks.add_task(antipode.append, ADDED)

    before = late()
    with asgi(app) as port:
        answer = ask(port, headers=sent())
    assert answer.lineage == Lineage()
    assert late() == before + 1
