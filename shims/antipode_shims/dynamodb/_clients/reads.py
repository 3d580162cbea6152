"""How a read under a floor is made consistent. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.dynamodb._statements import index_of

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Operations that take ``ConsistentRead`` for all that they read.
_WHOLE = frozenset({"ExecuteStatement", "GetItem", "Query", "Scan"})


def consistent(operation: str, params: dict[str, Any]) -> str:
    """Let a read of *operation* show what its region has now.

    Returns:
        Why it cannot; empty where it does.
    """
    named = {"BatchGetItem": "RequestItems", "BatchExecuteStatement": "Statements"}.get(operation)
    parts: list[Any] = [params] if operation in _WHOLE else []
    if named is not None:
        held = params[named]
        parts = list(held.values()) if isinstance(held, dict) else held
    if why := next(filter(None, (_refusal(operation, each) for each in parts)), ""):
        return why
    if named is None:
        params.update({"ConsistentRead": True} if parts else {})
    elif isinstance(params[named], dict):
        params[named] = {
            table: {**each, "ConsistentRead": True} for table, each in params[named].items()
        }
    else:
        params[named] = [{**each, "ConsistentRead": True} for each in params[named]]
    return ""


def _refusal(operation: str, params: Mapping[str, Any]) -> str:
    asked = params.get("ConsistentRead")
    if asked is False:
        return f"{operation} has ConsistentRead=False: leave it out after a barrier, or say True"
    if not asked and (index := params.get("IndexName") or index_of(params.get("Statement"))):
        return (
            f"{operation} reads the index {index!r}: a global index is never "
            "consistent, so read the table after a barrier; of a local one say ConsistentRead=True"
        )
    return ""
