"""The lines that the start page shows first do what it says, over a real PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology

for name in ("psycopg", "flask", "requests"):
    pytest.importorskip(name)
pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]

HERE = Path(__file__).parent
FIRST = (HERE.parents[2] / "README.md").read_text(encoding="utf-8").partition("start:first]")[2]
EXPORTS = re.findall(r'^export (\w+)=(?:"([^"]*)"|(\S+))$', FIRST, re.MULTILINE)
SETTINGS = {name: quoted or plain for name, quoted, plain in EXPORTS}
LINES = FIRST.partition("```python\n")[2].partition("```")[0]
REQUESTS = 5


def told(topology: PostgreSQLTopology) -> dict[str, str]:
    """The page's settings with the addresses of this machine."""
    near = topology.url(topology.replica)
    places = {"postgresql://db:5432": topology.url(), "postgresql://standby:5432": near}
    text = SETTINGS["ANTIPODE_DATASTORES"]
    for shown, here in places.items():
        assert shown in text
        text = text.replace(shown, here)
    return {**SETTINGS, "ANTIPODE_DATASTORES": text}


@contextmanager
def service(settings: dict[str, str], *places: str) -> Iterator[str]:
    """A process of the shop; its address."""
    command = [sys.executable, str(HERE / "_shop.py"), LINES, *places]
    environment = {**os.environ, "ANTIPODE_AUTO_TIMEOUT": "30", **settings}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def found(topology: PostgreSQLTopology, settings: dict[str, str]) -> Counter[str]:
    """What the second service found of the orders of the first."""
    import requests

    places = topology.url(), topology.url(topology.replica)
    with ExitStack() as stack:
        first, second = (stack.enter_context(service(settings, *places)) for _ in range(2))
        address = f"{first}/orders?told={second}"
        return Counter(requests.post(address, timeout=60).text for _ in range(REQUESTS))


@pytest.mark.ci
def test_two_lines_prevent_what_the_page_says(antipode_postgresql: PostgreSQLTopology) -> None:
    """Without them the second service finds nothing at the standby; with them all that was sent."""
    topology = antipode_postgresql
    topology.execute("DROP TABLE IF EXISTS orders")
    topology.execute("CREATE TABLE orders (id serial PRIMARY KEY)")
    topology.execute(f"ALTER TABLE orders OWNER TO {topology.user}")
    topology.wait_replicated()
    settings = told(topology)
    topology.pause()
    try:
        assert found(topology, {**settings, "ANTIPODE_DISABLED": "true"}) == {"stale": REQUESTS}
    finally:
        topology.resume()
    topology.set_lag(300)
    try:
        assert found(topology, settings) == {"right": REQUESTS}
    finally:
        topology.set_lag(0)
