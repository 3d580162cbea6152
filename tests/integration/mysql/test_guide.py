"""The guide to MySQL and MariaDB does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from antipode_shims import mysql as shims

from ._servers import FLAVORS, prepare

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "mysql.md"


@pytest.mark.parametrize("fixture", FLAVORS)
def test_examples_run(request: pytest.FixtureRequest, fixture: str) -> None:
    """All examples, run one after the other on a lagging pair of servers, hold."""
    with ExitStack() as stack:
        run_examples(request.getfixturevalue(fixture), stack)


def run_examples(topology: Any, stack: ExitStack) -> None:
    """Run them on servers where no other test finds their table afterwards."""
    prepare(topology)
    topology.execute("DROP TABLE IF EXISTS app.orders")
    topology.execute("CREATE TABLE app.orders (id INT PRIMARY KEY, state VARCHAR(9))")
    stack.callback(topology.execute, "DROP TABLE app.orders")
    if topology.store == "mysql":
        topology.execute("SET GLOBAL log_bin_trust_function_creators = ON")
    for statement in (*shims.migration("app.orders"), *shims.promises_ddl("app.antipode_promises")):
        topology.execute(statement)
    topology.wait_replicated()
    topology.set_lag(50)
    text = GUIDE.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    for port, address in (("3306", topology.primary), ("3307", topology.replica)):
        examples = examples.replace(f"127.0.0.1:{port}", str(address))
    names: dict[str, Any] = {}
    exec(compile(examples, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["value"] == b"hello, world"
    assert {write.datastore for write in names["lineage"]} == {"posts"}
    assert {write.datastore for write in names["seen"]} == {"orders"}
    assert names["refunded"] == "refunded"
    for one in ("primary", "replica"):
        shims.uninstrument_engine(names[one])
        names[one].dispose()
    names["posts"].close()
    names["near"].close()


def test_every_option_is_in_the_guide() -> None:
    """The table of options names each argument of the public functions."""
    text = GUIDE.read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("| `"))
    for function in (
        shims.shim,
        shims.shim_async,
        shims.instrument_engine,
        shims.instrument_connection,
        shims.instrument_django,
    ):
        for name in inspect.signature(function).parameters:
            assert name in ("engine", "connection", "alias") or f"`{name}`" in table, name
