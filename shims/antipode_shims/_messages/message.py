"""The scope of a consumed message."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from antipode.shim import Scope, begin_scope, end_scope, record_handled, record_unlabelled, shims_of

from .consumed import deliver, fulfilled_by
from .headers import carried, has_lineage, received

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token

    from opentelemetry.context import Context


class message_of(AbstractContextManager[Scope]):  # noqa: N801 - called as a function
    """The scope of a message with *headers*, consumed from the datastore *subject*.

    It holds what the message depends on and the message itself. What came as text is decoded when
    somebody asks for it. To which *destination* it was published is for a dry run; empty where
    that is not known.
    """

    __slots__ = ("_destination", "_headers", "_held", "_subject", "_token")

    _held: Scope
    _token: Token[Context]

    def __init__(
        self, headers: Mapping[str, Any] | None, subject: str = "", destination: str = ""
    ) -> None:
        """Begin nothing yet."""
        self._headers, self._subject, self._destination = headers, subject, destination

    def __enter__(self) -> Scope:
        """The block begins, and receipts learn of the message."""
        headers, subject = self._headers, self._subject
        unread, lineage, write = carried(headers, subject)
        if write is not None:
            lineage = lineage.append(write)
            for shim in shims_of(write.datastore):
                # Which region a channel consumes in only its application knows: the one where its
                # receipts listen, for a process reads in one region.
                if (ledger := getattr(shim, "ledger", None)) is not None:
                    fulfilled_by(headers, ledger, write.datastore)
                    deliver(ledger, write, received(headers, subject)[0])
        if subject and (write is None or subject != write.datastore):
            for shim in shims_of(subject):
                fulfilled_by(headers, getattr(shim, "ledger", None), subject)
        held = self._held = Scope(lineage, incoming=unread, answers=False)
        self._token = begin_scope(held, sys._getframe(1))  # noqa: SLF001 - who enters the block
        if not has_lineage(headers):
            record_unlabelled(subject)
        elif held.notes is not None:  # A dry run's.
            record_handled(subject if write is None else write.datastore, self._destination)
        return held

    def __exit__(self, *_: object) -> None:
        """The block ends, and with it the request."""
        end_scope(self._held, self._token)
