"""One request: a lineage goes through its tree as the library sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import antipode
from antipode import Lineage, WriteId

if TYPE_CHECKING:
    from ._trees import Service

MAX_BYTES = 1024


class Sizes(Protocol):
    """Who counts the texts."""

    def sent(self, text: str, *, entries: int, arrived: int, answer: bool) -> None:
        """A text was sent with a call, or with its answer.

        Args:
            text: as the library writes it within the bound.
            entries: of the lineage that it stands for.
            arrived: how many of them are in it.
            answer: whether it brings back what was added.
        """


def travel(root: Service, sizes: Sizes, *, answers: bool) -> Lineage:
    """Send a lineage through the tree of *root*; what it is in the end."""
    return _handle(root, Lineage(), sizes, answers=answers)


def _handle(service: Service, arrived: Lineage, sizes: Sizes, *, answers: bool) -> Lineage:
    """What a service depends on when it answers."""
    lineage, branches = arrived, list[Lineage]()
    for step in service.steps:
        if isinstance(step, WriteId):
            lineage = lineage.append(step)
            continue
        added = _call(step, lineage, sizes, answers=answers)
        if service.parallel:
            branches.append(added)
        else:
            lineage = lineage.merge(added)
    return lineage.merge(*branches)


def _call(service: Service, lineage: Lineage, sizes: Sizes, *, answers: bool) -> Lineage:
    """What a call adds to the lineage of its caller."""
    arrived = _send(lineage, sizes, answer=False)
    added = _handle(service, arrived, sizes, answers=answers).beyond(arrived)
    return _send(added, sizes, answer=True) if answers else Lineage()


def _send(lineage: Lineage, sizes: Sizes, *, answer: bool) -> Lineage:
    """What the receiver makes of the text of *lineage*."""
    text = antipode.serialize(lineage, max_bytes=MAX_BYTES)
    arrived = antipode.deserialize(text)
    sizes.sent(text, entries=len(lineage), arrived=len(arrived), answer=answer)
    return arrived
