"""What an explanation is made of: operations, and why each comes before the next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._history import Operation


class Rule(Enum):
    """Why one operation comes before another."""

    ORDER = "order"  #: Rule 1: one process did them in this order.
    MESSAGE = "message"  #: Rule 1: the later one receives what the earlier one sent.
    READS = "reads"  #: Rule 2: the later one reads what the earlier one wrote.
    LINEAGE = "lineage"  #: Rule 2: the later one reads what the earlier one's lineage wrote.
    SEEN = "seen"  #: The process saw the earlier one, and then read the later one.
    OVERWRITTEN = "overwritten"  #: The earlier one read what the later one overwrites.
    INITIAL = "initial"  #: The earlier one read the initial version.


class Edge(NamedTuple):
    """One operation comes before another; both by their numbers in the explanation.

    Attributes:
        because: of ``SEEN``, how the earlier one comes before the read of the later one; of
            ``OVERWRITTEN``, how what was read comes before the later one. Empty for the others.
    """

    earlier: int
    later: int
    rule: Rule
    because: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a person needs to believe a verdict; none of its operations can be left out.

    Attributes:
        operations: in the order of the history.
        cycle: each edge begins where the one before it ends, and the first where the last one
            ends. Empty where a read returned what nobody wrote.
        process: whose serialization cannot exist; empty where the order itself is a cycle.
    """

    operations: tuple[Operation, ...]
    cycle: tuple[Edge, ...] = ()
    process: str = ""
