"""Who may observe: a dry run, telemetry. Without one: one comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from antipode._barrier.barrier import Barrier
    from antipode._barrier.shim import Shim
    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import Dependency, WriteId
    from antipode._request.scope import Scope

#: Of a read that a dry run is to judge: its request, and what that depends on.
Unjudged: TypeAlias = "tuple[Scope, Lineage]"


class Observer(Protocol):
    """What a dry run is told, by the thread or task that does it. Nothing here raises or waits."""

    def opened(self, scope: Scope, *, incoming: bool) -> None:
        """A request begins."""
        ...

    def ended(self) -> None:
        """The block of a request is over."""
        ...

    def wrote(self, scope: Scope, writes: Sequence[Dependency]) -> None:
        """The store acknowledged *writes*, or a branch promised them; they entered *scope*."""
        ...

    def concerned(self, scope: Scope, shim: Shim) -> Unjudged | None:
        """What a read that a client is about to send is to be judged by, if there is anything."""
        ...

    def reads(self, shim: Shim, unjudged: Unjudged, start: FrameType) -> None:
        """A client of *shim* sends such a read, or has, and has no answer yet.

        Who reads is looked for from the frame *start* on.
        """
        ...

    def barrier(self, call: Barrier) -> None:
        """A barrier is about to succeed."""
        ...

    def showed(self, scope: Scope | None, shim: Shim, writes: Sequence[WriteId]) -> None:
        """A read by a client of *shim* showed *writes*, by their own tokens."""
        ...

    def uncommitted(self, scope: Scope | None, shim: Shim, who: object, *, wrote: bool) -> None:
        """A transaction of *who*, a client's connection or session, has written, or is over."""
        ...

    def counted(self, name: str, datastore: str) -> None:
        """Something was counted."""
        ...

    def unscoped(self, what: str, datastore: str) -> None:
        """Something found no scope."""
        ...

    def absorb(self, scope: Scope, lineage: Lineage) -> Lineage:
        """*lineage* without the notes of a dry run in it, which *scope* keeps."""
        ...

    def notes(self, scope: Scope) -> frozenset[str]:
        """The items that travel with the lineage of *scope*."""
        ...

    def site(self) -> FrameType:
        """Who calls: the nearest frame outside of libraries."""
        ...

    def settle(self, timeout_s: float) -> None:
        """Wait until the evidence of reads that are over has begun; for tests."""
        ...

    def close(self) -> None:
        """The dry run is over."""
        ...


#: The dry run of this process; None where there is none.
dry_run: Observer | None = None
