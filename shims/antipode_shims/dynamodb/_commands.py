"""Which operations of the API read, write, or do neither. Static tables; no I/O."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from antipode_shims._aws.call import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Writes that enter the lineage of an instrumented client.
COVERED_WRITES = frozenset(
    """
    BatchWriteItem DeleteItem PutItem TransactWriteItems UpdateItem
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Reads that a floor holds back. ``ExecuteStatement`` and its like are reads where each of their
#: statements is a ``SELECT``, else they are in no table.
COVERED_READS = frozenset(
    """
    BatchGetItem GetItem Query Scan TransactGetItems
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Neither reads nor writes items. What is in no table at all may write, and is taken for a write.
_NEUTRAL = frozenset(
    """
    CreateBackup CreateGlobalTable CreateTable DeleteBackup DeleteResourcePolicy DescribeBackup
    DescribeContinuousBackups DescribeContributorInsights DescribeEndpoints DescribeExport
    DescribeGlobalTable DescribeGlobalTableSettings DescribeImport
    DescribeKinesisStreamingDestination DescribeLimits DescribeTable
    DescribeTableReplicaAutoScaling DescribeTimeToLive DisableKinesisStreamingDestination
    EnableKinesisStreamingDestination ExportTableToPointInTime GetResourcePolicy ListBackups
    ListContributorInsights ListExports ListGlobalTables ListImports ListTables
    ListTagsOfResource PutResourcePolicy TagResource UntagResource UpdateContinuousBackups
    UpdateContributorInsights UpdateGlobalTable UpdateGlobalTableSettings
    UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive
    """.split()  # noqa: SIM905 - a table that is read by eye
)

_KINDS: dict[str, Kind] = {
    name: kind
    for names, kind in (
        (_NEUTRAL, Kind.NEUTRAL),
        (COVERED_READS, Kind.READ),
        (COVERED_WRITES, Kind.WRITE),
    )
    for name in names
}
#: Where the statements of an operation of PartiQL are that has several.
STATEMENTS = {"BatchExecuteStatement": "Statements", "ExecuteTransaction": "TransactStatements"}
_SELECT = re.compile(r"\s*(SELECT|EXISTS)\b", re.IGNORECASE)


def kind_of(operation: str, params: Mapping[str, Any]) -> Kind:
    """What a call of *operation* with *params* means for a lineage."""
    if operation == "ExecuteStatement":
        statements: list[Any] = [params.get("Statement")]
    elif (held := STATEMENTS.get(operation)) is not None:
        statements = [each.get("Statement") for each in params.get(held) or ()]
    else:
        return _KINDS.get(operation, Kind.OTHER)
    selects = [isinstance(each, str) and _SELECT.match(each) for each in statements]
    return Kind.READ if selects and all(selects) else Kind.OTHER


def shows_items(operation: str, params: Mapping[str, Any]) -> bool:
    """Whether a write shows its caller what was there, as a read does."""
    return operation in COVERED_WRITES and params.get("ReturnValues", "NONE") != "NONE"
