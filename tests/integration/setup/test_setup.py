"""``antipode.setup()``: one call covers a process, whatever is imported before or after it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import ConfigurationError, Lineage
from tests.integration._ingress import ADDED, CAME, ask, wsgi
from tests.integration.setup._program import FRAMEWORKS, HEADER, handle

if TYPE_CHECKING:
    from collections.abc import Iterator

for name in ("fastapi", "flask", "django", "aiohttp", "requests", "httpx"):
    pytest.importorskip(name)
ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.slow


@pytest.fixture
def covered() -> Iterator[None]:
    """This process, covered until the test ends."""
    antipode.setup()
    yield
    antipode.teardown()


def served(framework: str, order: str) -> tuple[str, str | None]:
    """What a handler found, and its answer, in a process of its own."""
    command = [sys.executable, "-m", "tests.integration.setup._program", framework, order]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found, answered = json.loads(ran.stdout)
    return found, answered


@pytest.mark.slow
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_is_covered_in_any_order(framework: str, order: str) -> None:
    """A handler has what came, and the answer what it added, each once."""
    found, answered = served(framework, order)
    assert set(antipode.deserialize(found)) == {CAME}
    assert answered is not None
    assert antipode.deserialize(answered) == Lineage([ADDED])


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_teardown_undoes_it(framework: str) -> None:
    """An application that was made while it was on answers as if it had never been."""
    assert served(framework, "undone") == ("1", None)


@pytest.mark.ci
@pytest.mark.parametrize("client", ["requests", "httpx"])
def test_clients_are_covered(covered: None, client: str) -> None:
    """What the other service added is in the caller's scope, and it got what the caller had."""
    del covered
    with wsgi(_service()) as port, antipode.scope(Lineage([CAME])) as scope:
        body = _get(client, f"http://127.0.0.1:{port}/")
        assert antipode.deserialize(body) == Lineage([CAME])
        assert ADDED in scope.lineage


def _service() -> object:
    from flask import Flask

    app = Flask("shop")
    app.add_url_rule("/", "root", handle)
    return app


def _get(client: str, url: str) -> str:
    import httpx
    import requests

    library = {"requests": requests, "httpx": httpx}[client]
    return str(library.get(url, timeout=30).text)


def test_an_option_of_one_application_stays(covered: None) -> None:
    """``instrument_app()`` beside it opens one scope for a request, and undoing that leaves it."""
    del covered
    from antipode.integrations.wsgi import instrument_app, uninstrument_app

    app = instrument_app(_service())
    for _ in range(2):
        with wsgi(app) as port:
            assert ask(port).lineage == Lineage([ADDED])
        uninstrument_app(app)


@pytest.mark.slow
def test_what_is_skipped_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """``skip=`` takes a framework's own name, and the log says so."""
    caplog.set_level(logging.INFO, "antipode")
    try:
        antipode.setup(skip=["fastapi", "flask"])
        with wsgi(_service()) as port:
            assert dict(ask(port).headers).get(HEADER) is None
    finally:
        antipode.teardown()
    (said,) = (each.getMessage() for each in caplog.records if "setup()" in each.getMessage())
    assert said.startswith("setup() covers django, aiohttp-server, ")
    assert "; skipped: flask, starlette" in said
    assert "names of their datastores: redis" in said


def test_a_name_that_it_does_not_know_is_refused() -> None:
    """A misspelling would cover what should be left alone: the error lists what there is."""
    with pytest.raises(ConfigurationError, match=r"\['flusk'\].* covers starlette, flask"):
        antipode.setup(skip=["flusk"])


@pytest.mark.slow
def test_what_is_not_covered_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A framework that is installed and that nothing integrates is in the log line."""
    (tmp_path / "tornado").mkdir()
    (tmp_path / "tornado" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level(logging.INFO, "antipode")
    antipode.setup()
    antipode.teardown()
    assert "installed and not covered: tornado" in caplog.text


@pytest.mark.slow
def test_an_integration_that_fails_harms_no_import(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that is too old is logged by name; everything else is covered."""
    from antipode.integrations import requests

    def fails() -> None:
        raise ImportError("requests 9 is too new")

    monkeypatch.setattr(requests, "instrument", fails)
    caplog.set_level(logging.INFO, "antipode")
    antipode.setup()
    try:
        with wsgi(_service()) as port:
            assert ask(port).lineage == Lineage([ADDED])
    finally:
        antipode.teardown()
    assert "setup() does not cover requests" in caplog.text
    assert "setup() covers" in caplog.text
    assert ", requests, " not in caplog.text
