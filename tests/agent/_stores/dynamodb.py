"""DynamoDB: stamps and the regions that have them, operations, attributes of items."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from antipode_shims._aws.call import Kind
from antipode_shims._aws.homes import Homes
from antipode_shims.dynamodb._clients.rewrite import stamped_update
from antipode_shims.dynamodb._commands import kind_of
from antipode_shims.dynamodb._format import lineage_in
from antipode_shims.dynamodb._look import Shown, look
from antipode_shims.dynamodb._position import Place, item_of
from antipode_shims.dynamodb._statements import parse
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_shims.dynamodb._look import Answer, Question
    from antipode_shims.dynamodb._position import Item

    Given = Mapping[str, Any]

#: A microsecond that is later than every stamp.
_LATE_US = 2**53
_KINDS = {
    Kind.READ: "read",
    Kind.WRITE: "write",
    Kind.OTHER: "unknown",
    Kind.NEUTRAL: "neither",
}


def look_at(given: Given) -> dict[str, list[str]]:
    """What the last of so many looks says of each write."""
    server = given["server"]
    writes = [
        write_at({k: v for k, v in each.items() if k != "status"}) for each in given["writes"]
    ]
    homes: Homes[Shown] = Homes()
    now_us = int(given.get("now_us", _LATE_US))
    before = [{**server, "regions": given["before"]}] if "before" in given else []
    shown: Any = None
    for each in [*before, *([server] * given.get("looks", 1))]:
        steps = look(writes, server["region"], homes, now_us=now_us)
        try:
            question = next(steps)
            while True:
                question = steps.send(_answer(each, question))
        except StopIteration as end:
            shown = end.value
    return {"statuses": [str(shown.statuses[each]) for each in writes]}


def _answer(server: Given, question: Question) -> Answer | Exception:
    region = question.region or server["region"]
    tables = server["regions"].get(region)
    if tables is None:
        return OSError("away")
    return {item: _shown(tables, item, whole=question.whole) for item in question.items}


def _shown(tables: Given, item: Item, *, whole: bool) -> Shown | None:
    """An item of a region; tables that are not there are not in it."""
    if item.table not in tables:
        return None
    found = tables[item.table].get(item.named("").partition("/")[2].rstrip("@"))
    if found is None:
        return Shown(present=False)
    stamp = int(found["stamp"]) if "stamp" in found else None
    return Shown(present=True, stamp=stamp, digest=found.get("value", "") if whole else "")


def keys(given: Given) -> dict[str, list[str] | None]:
    """How an item is named as something that was written in a region."""
    item = item_of(given["table"], {name: _value(typed) for name, typed in given["key"].items()})
    if item is None:
        return {"keys": None}
    named = item.named(given["region"])
    assert Place.parse(named) == Place(item, given["region"]), "a reader finds the same item"
    return {"keys": [named]}


def _value(typed: Given) -> Given:
    """A value as the API has it."""
    return {
        kind: base64.b64decode(value) if kind == "B" else value for kind, value in typed.items()
    }


def command(given: Given) -> dict[str, str]:
    """What one operation does."""
    ((operation, params),) = given["command"].items()
    return {"does": _KINDS[kind_of(operation, params)]}


def expression(given: Given) -> dict[str, str]:
    """How the expression of an update sets the stamp, too."""
    update = {"UpdateExpression": given["given"]} if given["given"] else {}
    return {"expression": stamped_update(update, 1)["UpdateExpression"]}


def statement(given: Given) -> dict[str, str | None]:
    """How a statement of PartiQL sets the stamp 7, and the item that it writes."""
    understood = parse(given["statement"], [_value(each) for each in given.get("parameters", ())])
    if understood is None:
        return {"stamped": None, "item": None}
    item = item_of(understood.table, understood.values, given.get("key", ["id"]))
    return {
        "stamped": understood.stamped(given["statement"], 7),
        "item": None if item is None else item.named("us-east-1"),
    }


def found(given: Given) -> dict[str, Any]:
    """What a reader makes of an item's attribute."""
    return {"lineage": of_lineage(lineage_in(given["item"], "posts"))}
