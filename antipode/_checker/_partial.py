"""What a partial history allows to judge: a recorder does not see all that happens."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ._history import READ, RECEIVE, SEND, WRITE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ._history import Operation


def known(
    operations: Sequence[Operation],
    initial: Mapping[tuple[str, str], str],
    vanishing: Collection[tuple[str, str]],
) -> Iterator[Operation]:
    """The operations without those of which nobody knows what they read or received.

    A write may be left out with all reads of its version, and a read or a receive alone: what the
    rest violates, the whole does. So a violation that is found is one.
    """
    written = Counter(
        (one.subject, one.version) for one in operations if one.kind == WRITE
    ) + Counter(initial.items())
    sent = {one.message for one in operations if one.kind == SEND}
    for one in operations:
        if one.kind == RECEIVE and one.message not in sent:
            continue
        if one.kind in (READ, WRITE):
            if one.version is None:
                if one.subject in vanishing:
                    continue
            elif written[one.subject, one.version] != 1:
                continue
        yield one
