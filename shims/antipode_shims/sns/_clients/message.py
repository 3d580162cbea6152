"""The scope of a received message."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from antipode import Lineage, scope
from antipode.shim import record_handled, record_unlabelled
from antipode_shims.sns._clients.events import event_in, lineage_of_event
from antipode_shims.sns._clients.received import LABELS
from antipode_shims.sns._format import lineage_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from antipode.shim import Scope

HandlerT = TypeVar("HandlerT", bound="Callable[..., Any]")


@contextmanager
def message(msg: Any, *, datastore: str, events: str | None = None) -> Iterator[Scope]:
    """Handle one received message as a request of its own.

    The scope holds what the message depends on; a barrier in it waits for that. It never joins a
    scope that is open already. A message without a lineage starts an empty one; one whose lineage
    is unreadable, or may have been left out, starts one that is incomplete. An event of S3 has no
    lineage: its scope has the version of the object that it reports (``s3.lineage``).

    Args:
        msg: of ``receive_message`` or ``Queue.receive_messages``, delivered raw or wrapped by SNS,
            or a copy of one; or a record of an event of AWS Lambda.
        datastore: the name that its publisher and every other service spell alike.
        events: of events of S3, the datastore of their buckets; None: the one S3 datastore that
            has a client in this process.

    Raises:
        TypeError: it is no message.
    """
    lineage = _lineage_of(_mapping_of(msg), datastore, events)
    with scope(lineage) as held:
        if lineage is None:
            record_unlabelled(datastore)
        elif held.notes is not None:  # A dry run's.
            record_handled(datastore)
        yield held


def lambda_handler(*, datastore: str, events: str | None = None) -> Callable[[HandlerT], HandlerT]:
    """Run a handler of AWS Lambda in the scope of its event: of all its records together.

    For events of SNS, of SQS, and of S3, direct or in a message of these. The handler is called
    with the event, and whatever comes after.

    Args:
        datastore: as of :func:`message`.
        events: as of :func:`message`.
    """

    def decorate(handler: HandlerT) -> HandlerT:
        @functools.wraps(handler)
        def call(event: Any, *args: Any, **kwargs: Any) -> Any:
            found = [_lineage_in(each, datastore, events) for each in _records_of(event)]
            lineage = Lineage().merge(*(each for each in found if each is not None))
            with scope(lineage) as held:
                if None in found:
                    record_unlabelled(datastore)
                elif held.notes is not None:
                    record_handled(datastore)
                return handler(event, *args, **kwargs)

        return cast("HandlerT", call)

    return decorate


def _records_of(event: Any) -> list[Mapping[str, Any]]:
    """The records of an event of Lambda; one of EventBridge's is its own."""
    if not isinstance(event, dict):
        return []
    records = event.get("Records")
    if records is None:
        return [event] if event_in(event) is not None else []
    return [each for each in records if isinstance(each, dict)]


def _lineage_in(record: Mapping[str, Any], datastore: str, events: str | None) -> Lineage | None:
    """What a record of Lambda depends on, by its label or as an event of S3; None for neither."""
    if (text := text_of(record)) is not None:
        return lineage_of(text, datastore)
    event = event_in(record)
    if event is None:
        return None
    return lineage_of_event(event, datastore=datastore, events=events)


def _lineage_of(msg: Mapping[str, Any], datastore: str, events: str | None) -> Lineage | None:
    """The same of a message, of which a label may be hidden."""
    event = event_in(msg)
    if event is None or text_of(msg) is not None:
        return LABELS.of(msg, datastore)
    return lineage_of_event(event, datastore=datastore, events=events)


def _mapping_of(msg: Any) -> Mapping[str, Any]:
    """*msg* as the API has it.

    Raises:
        TypeError: it is no message.
    """
    found = msg if isinstance(msg, dict) else getattr(getattr(msg, "meta", None), "data", None)
    if not isinstance(found, dict):
        what = f"a {type(msg).__name__} is no message: pass one of receive_message, or a record"
        raise TypeError(what)
    return found
