"""The scope of a received message."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from antipode import Lineage, scope
from antipode.shim import record_handled, record_unlabelled
from antipode_shims.sns._clients.received import LABELS
from antipode_shims.sns._format import lineage_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from antipode.shim import Scope

HandlerT = TypeVar("HandlerT", bound="Callable[..., Any]")


@contextmanager
def message(msg: Any, *, datastore: str) -> Iterator[Scope]:
    """Handle one received message as a request of its own.

    The scope holds what the message depends on; a barrier in it waits for that. It never joins a
    scope that is open already. A message without a lineage starts an empty one; one whose lineage
    is unreadable, or may have been left out, starts one that is incomplete.

    Args:
        msg: of ``receive_message`` or ``Queue.receive_messages``, delivered raw or wrapped by SNS,
            or a copy of one; or a record of an event of AWS Lambda.
        datastore: the name that its publisher and every other service spell alike.

    Raises:
        TypeError: it is no message.
    """
    lineage = LABELS.of(_mapping_of(msg), datastore)
    with scope(lineage) as held:
        if lineage is None:
            record_unlabelled(datastore)
        elif held.notes is not None:  # A dry run's.
            record_handled(datastore)
        yield held


def lambda_handler(*, datastore: str) -> Callable[[HandlerT], HandlerT]:
    """Run a handler of AWS Lambda in the scope of its event: of all its records together.

    For events of SNS and of SQS. The handler is called with the event, and whatever comes after.

    Args:
        datastore: as of :func:`message`.
    """

    def decorate(handler: HandlerT) -> HandlerT:
        @functools.wraps(handler)
        def call(event: Any, *args: Any, **kwargs: Any) -> Any:
            records = event.get("Records") or () if isinstance(event, dict) else ()
            texts = [text_of(each) for each in records]
            lineage = Lineage().merge(*(lineage_of(each, datastore) for each in texts))
            with scope(lineage) as held:
                if None in texts:
                    record_unlabelled(datastore)
                elif held.notes is not None:
                    record_handled(datastore)
                return handler(event, *args, **kwargs)

        return cast("HandlerT", call)

    return decorate


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
