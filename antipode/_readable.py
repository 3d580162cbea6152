"""Texts from outside, where what cannot be read must never pass for an empty lineage."""

from __future__ import annotations

from ._codec import decode
from ._errors import LineageDecodeError
from ._lineage import Lineage
from ._metrics import count, log_once


def readable(subject: str, text: str | bytes) -> Lineage:
    """The lineage of *text*; ``incomplete`` (*subject*, ``unreadable``) where it is none.

    The latter is counted, and logged once for each subject and reason.

    Args:
        subject: whose writes are missing then: a datastore, a service, or ``baggage``.
        text: what came with a request, a message, a response or a value.
    """
    try:
        return decode(text if isinstance(text, str) else text.decode("ascii"))
    except UnicodeDecodeError:
        return unreadable(subject, "lineage_alphabet")
    except LineageDecodeError as error:
        return unreadable(subject, error.code)


def unreadable(subject: str, why: str) -> Lineage:
    """The lineage that stands for one that cannot be read, for the reason *why*."""
    count("unreadable", subject)
    log_once("unreadable", subject, why, "a lineage of %r is unreadable (%s)", subject, why)
    return Lineage(incomplete=[(subject, "unreadable")])
