"""PostgreSQL: timelines and positions, statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import Lineage, WriteId
from antipode_shims.postgresql import _statements as statements
from antipode_shims.postgresql._catalogue import Catalogue
from antipode_shims.postgresql._look import converse, observation
from antipode_shims.postgresql._position import State, parse_state
from antipode_shims.postgresql._table2 import found as found_with
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_shims.postgresql._position import Rows

    Given = Mapping[str, Any]

_FLAGS = {
    statements.READS: "reads",
    statements.WRITES: "writes",
    statements.CALLS: "calls",
    statements.BEGINS: "begins",
    statements.COMMITS: "commits",
    statements.ENDS: "ends",
    statements.TWO_PHASES: "two_phases",
    statements.IMPORTS: "imports",
    statements.COMMITS_INSIDE: "commits_inside",
    statements.FETCHES: "fetches",
    statements.DECLARES: "declares",
    statements.HOLDS: "holds",
    statements.ISOLATES: "isolation",
    statements.MANY: "several",
}


def look_at(given: Given) -> dict[str, list[str]]:
    """What one look says of each write."""
    writes = [
        write_at({k: v for k, v in each.items() if k != "status"}) for each in given["writes"]
    ]
    shown = observation(_state(given["server"]), writes)
    return {"statuses": [str(shown.statuses[each]) for each in writes]}


def cover(given: Given) -> dict[str, Any]:
    """What a read may have seen."""
    covers = _state(given["asked"]).covers
    if covers is None:
        return {"lineage": of_lineage(Lineage(incomplete=[("posts", "unsampled")]))}
    log, position = covers
    return {"lineage": of_lineage(Lineage([WriteId("posts", log.key, position, covering=True)]))}


def found(given: Given) -> dict[str, Any]:
    """What a reader makes of the columns beside a value."""
    lineage, match = found_with("posts", given["texts"], own=given["own"])
    return {"lineage": of_lineage(lineage), "match": match}


def _state(server: Given) -> State:
    number = server["timeline"]
    row = {
        "recovering": "t" if server["recovering"] else "f",
        "position": server["position"],
        "timeline": str(number) if server["recovering"] else f"{number:08X}",
        "system": server["system"],
        "started": "1",
        "receiving": "t" if server.get("receiving") else "f",
        "received": server.get("received"),
        "rights": server.get("rights", "files"),
        "history": server.get("history"),
        "next": server.get("next"),
        "follows": "t" if server.get("follows") else "f",
        "later": server.get("later"),
    }
    return parse_state([row])


def command(given: Given) -> dict[str, list[str]]:
    """What a statement may do."""
    found = statements.meaning(given["command"])
    return {"does": sorted(name for flag, name in _FLAGS.items() if found & flag)}


def named(given: Given) -> dict[str, bool | None]:
    """Whether a statement that reads by its text may write, by a catalogue."""
    catalogue = Catalogue(frozenset())

    def ask(sql: str) -> Rows:
        if "'call'" in sql:
            return [dict(row) for row in given["catalogue"]]
        return [{"name": name} for name in given["functions"]]

    functions = statements.unknown_functions(given["command"])
    converse(catalogue.ask(functions), ask)
    return {"may_write": catalogue.may_write(given["command"], functions)}
