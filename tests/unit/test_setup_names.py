"""What ``setup()`` covers, by the names that users skip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import ConfigurationError
from antipode._setup import targets
from antipode._setup.wanted import is_set_up

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    """Nothing stays covered."""
    yield
    antipode.teardown()


def test_what_is_skipped_is_left_alone() -> None:
    """All names, and a framework by the name that its users know."""
    names = [name for name in targets.NAMES if name != "starlette"]
    antipode.setup(skip=[*names, "fastapi"])
    assert not is_set_up()
    antipode.setup(skip=[name for name in targets.NAMES if name != "requests"])
    assert is_set_up()
    antipode.teardown()
    assert not is_set_up()


def test_a_name_that_is_none_is_refused() -> None:
    """With those that there are; nothing is covered then."""
    with pytest.raises(ConfigurationError, match=r"postgres'.*it covers .*postgresql"):
        antipode.setup(skip=["postgres"])
    assert not is_set_up()


def test_what_is_beneath_another_package_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """urllib3 carries requests of its own only where nothing that is covered is built on it."""
    there = {"urllib3", "requests"}
    monkeypatch.setattr(targets, "is_installed", there.__contains__)
    assert targets.uncovered() == []
    there.remove("requests")
    assert targets.uncovered() == ["urllib3"]


@pytest.mark.parametrize(
    ("package", "name"),
    [("asyncmy", "asyncmy"), ("mysql", "mysql-connector-python"), ("pymemcache", "pymemcache")],
)
def test_clients_that_nothing_covers_are_named(
    monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    """As they are installed: who uses one learns that its writes are in no lineage."""
    monkeypatch.setattr(targets, "is_installed", {package}.__contains__)
    assert targets.uncovered() == [name]


def test_clients_without_rules_are_named_as_they_are_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of those that are installed, and of stores without a rule; each once."""
    there = {"redis", "botocore", "pymysql"}
    monkeypatch.setattr(targets, "is_installed", there.__contains__)
    assert targets.clients(frozenset()) == ["redis", "PyMySQL", "boto3"]
    assert targets.clients(frozenset({"redis", "s3"})) == ["PyMySQL", "boto3"]
    assert targets.clients(frozenset({"dynamodb", "s3", "sns", "mysql"})) == ["redis"]
