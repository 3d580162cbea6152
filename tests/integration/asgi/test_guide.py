"""The examples of docs/guides/integrations.md do what the guide says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import antipode
from antipode import Lineage
from tests.integration._ingress import ADDED, CAME, asgi, ask, late, sent, wsgi

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "integrations.md"


def run(starts_with: str) -> dict[str, Any]:
    """The names that the example defines which has this text."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (each for each in blocks if starts_with in each)
    names: dict[str, Any] = {"__name__": __name__, "__file__": __file__}
    exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102 - the guide's own example
    return names


def write() -> str:
    """A handler of the reader's."""
    antipode.append(ADDED)
    return "written"


def test_fastapi() -> None:
    """The application that the guide makes answers with what its handlers add."""
    pytest.importorskip("uvicorn")
    app = run("antipode.instrument()\nasgi.instrument_app(app)")["app"]
    app.get("/")(write)
    with asgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])


def test_what_is_after_the_response_and_its_cure() -> None:
    """Without the cure the commit is in no answer, and counted; with it, it is in the answer."""
    pytest.importorskip("uvicorn")
    app = run("Depends(session, scope=")["app"]
    before = late()
    with asgi(app) as port:
        assert ask(port, "/late", sent()).lineage == Lineage()
        cured = ask(port, "/cured").lineage
    assert cured is not None
    assert [write.key for write in cured] == ["order:1"]
    assert late() == before + 1  # Now that the server is done with all that comes after.


def test_flask() -> None:
    """The application that the guide makes answers with what its views add."""
    pytest.importorskip("flask")
    app = run("wsgi.instrument_app(app)")["app"]
    app.get("/")(write)
    with wsgi(app) as port:
        assert ask(port, "/", sent(CAME)).lineage == Lineage([ADDED])


def test_djangos_settings_name_what_is_there() -> None:
    """The first of the list is the middleware of this library."""
    from importlib import import_module

    first, *_ = run("MIDDLEWARE = [")["MIDDLEWARE"]
    module, _, name = first.rpartition(".")
    assert getattr(import_module(module), name).async_capable


def test_the_response_propagator() -> None:
    """The example sets the hook."""
    hooks = pytest.importorskip("opentelemetry.instrumentation.propagators")
    before = hooks.get_global_response_propagator()
    try:
        run("response_propagator.instrument()")
        assert hooks.get_global_response_propagator() is not before
    finally:
        hooks.set_global_response_propagator(before)
