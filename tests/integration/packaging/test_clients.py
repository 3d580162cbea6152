"""The list of promised clients: what is tested of it, and what of it is newer than was tested."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools import clients

from ._extras import PROGRAMS, ROOT

if TYPE_CHECKING:
    import pytest


def test_every_promised_client_has_a_program() -> None:
    """And an oldest release; extras for tools of the project's own are the only others."""
    for extra in clients.EXTRAS:
        assert clients.clients_of(extra)
        assert (PROGRAMS / f"use_{extra}.py").exists()
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    _, _, found = text.partition("[project.optional-dependencies]")
    extras = re.findall(r"^([\w-]+) = \[", found.partition("\n[")[0], re.MULTILINE)
    tools = {
        "cli",
        "testing",
        "containers",
        "emulators",
        "servers",
        "bench",
        "docs",
        "dev",
        "examples",
    }
    others = {name for name in extras if name.endswith("test")}
    assert {*extras} - tools - others == {*clients.EXTRAS, "embedded"}


def test_what_was_released_since_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its name in pyproject.toml, however the index spells it, with both releases."""
    here = {"PyMySQL": "1.1.0", "redis": "5.0.0"}
    monkeypatch.setattr(clients, "installed", lambda names: {n: here[n] for n in names & {*here}})
    monkeypatch.setattr(clients, "newest", lambda _names: {"pymysql": "1.1.3"})
    clients.main()
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "PyMySQL: tested 1.1.0, released 1.1.3",
        "1 of 2 clients have a newer release than was tested here",
    ]
