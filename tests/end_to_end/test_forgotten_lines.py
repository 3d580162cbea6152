"""Forget any one line of a small application's set-up: a log, doctor or an error says so."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration._processes import ROOT, environment

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

for name in ("celery", "flask", "httpx"):
    pytest.importorskip(name)
pytestmark = pytest.mark.store("redis")
#: By the line: who is asked, and what is then said that is not said otherwise.
TOLD = {
    "middleware": ("web", "requests"),
    "propagator": ("web", "propagat|ingress"),
    "client": ("web", "httpx: loaded and not instrumented"),
    "publisher": ("web", "celery"),
    "worker": ("worker", "celery"),
    "writer": ("web", r"clients that nothing instruments: redis at \S+/0"),
    "reader": ("web", r"clients that nothing instruments: redis at \S+/0"),
    "reads_from": ("web", "say reads_from='replica' where one is a replica"),
    "lineage": ("web", "means nothing without lineage='beside'"),
    "name": ("web", "its server has the log of 'posts'"),
    "shim": ("request", "no shim|unknown_store"),
}


def said(who: str, forgotten: str, topology: RedisTopology) -> list[str]:
    """The lines that doctor prints about *who*, or what a request logs and raises."""
    module = "tests.end_to_end._lines"
    settings = {"FORGOTTEN": forgotten, "PRIMARY": str(topology.primary)}
    settings["REPLICA"] = str(topology.replica)
    command = [sys.executable, "-m", "antipode", "doctor", "--app", f"{module}:{who}"]
    if who == "request":
        command = [sys.executable, "-c", f"from {module} import request; request()"]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return (ran.stdout + ran.stderr).splitlines()


@pytest.mark.parametrize("line", TOLD)
def test_a_line_that_is_forgotten_is_told(line: str, antipode_redis: RedisTopology) -> None:
    """In a line that is not there where nothing is forgotten."""
    who, what = TOLD[line]
    whole = said(who, "", antipode_redis)
    found = [each for each in said(who, line, antipode_redis) if each not in whole]
    assert any(re.search(what, each) for each in found), "\n".join(found)
