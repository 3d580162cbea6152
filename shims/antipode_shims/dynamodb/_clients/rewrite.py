"""How a stamp gets into a request: by value, or by the ``SET`` of an update. No I/O."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from antipode_shims.dynamodb._format import OURS, STAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

#: How our attribute is called in an application's expression.
_NAME, _VALUE = "#antipode_ap", ":antipode_ap"
#: The legacy parameters of an update, which expressions replace.
_LEGACY = frozenset({"AttributeUpdates", "ConditionalOperator", "Expected"})
#: Parameters of an update that the service refuses where they are given and empty.
_NEVER_EMPTY = ("UpdateExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
#: The keyword, and neither part of a name nor of a placeholder.
_SET = re.compile(r"(?<![#:\w.])SET(?=\s)", re.IGNORECASE)


def stamped_item(item: Mapping[str, Any], stamp: int) -> dict[str, Any]:
    """*item* as it is put, with its stamp; what another write left in it goes."""
    kept = {name: value for name, value in item.items() if name not in OURS}
    return {**kept, STAMP: {"N": str(stamp)}}


def stamped_update(params: Mapping[str, Any], stamp: int) -> dict[str, Any]:
    """The parameters of an update that sets the stamp, too.

    What the service refuses is left as it is: with ours it would be a write.
    """
    if any(name in params and not params[name] for name in _NEVER_EMPTY):
        return dict(params)
    number = {"N": str(stamp)}
    # The service refuses an expression together with a legacy parameter, such as a condition.
    if _LEGACY & params.keys() and "UpdateExpression" not in params:
        ours = {STAMP: {"Action": "PUT", "Value": number}}
        return {**params, "AttributeUpdates": {**params.get("AttributeUpdates", {}), **ours}}
    expression = str(params.get("UpdateExpression", ""))
    clause = f"SET {_NAME} = {_VALUE}"
    found = _SET.search(expression)
    if found is None:
        expression = f"{clause} {expression}".rstrip()
    else:
        expression = f"{expression[: found.start()]}{clause},{expression[found.end() :]}"
    return {
        **params,
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {**params.get("ExpressionAttributeNames", {}), _NAME: STAMP},
        "ExpressionAttributeValues": {
            **params.get("ExpressionAttributeValues", {}),
            _VALUE: number,
        },
    }


def without_ours(reply: dict[str, Any]) -> None:
    """Take our attributes out of whatever items *reply* shows, in place."""
    for name in ("Item", "Attributes"):
        if isinstance(held := reply.get(name), dict):
            _strip(held)
            if name == "Attributes" and not held:
                del reply[name]  # An update that changed nothing else says nothing.
    for name in ("Items", "Responses"):
        held = reply.get(name)
        groups = list(held.values()) if isinstance(held, dict) else [held or []]
        for items in groups:
            _strip_all(items)
    for tables in (reply.get("UnprocessedItems") or {}).values():
        for each in tables:
            _strip((each.get("PutRequest") or {}).get("Item"))
    for reason in reply.get("CancellationReasons") or ():
        _strip(reason.get("Item"))


def _strip_all(items: Any) -> None:
    for each in items:
        # TransactGetItems and PartiQL wrap each item; an item may have attributes of these names.
        if len(each) <= _WRAPPED:
            _strip(each.get("Item"))
            refusal = each.get("Error")
            _strip(refusal.get("Item") if isinstance(refusal, dict) else None)
        _strip(each)


#: ``Item``, and at most ``TableName`` or ``Error`` beside it.
_WRAPPED = 3


def _strip(item: Any) -> None:
    if isinstance(item, dict):
        for name in OURS:
            item.pop(name, None)
