"""The handlers of an instrumented client of SNS or SQS. None of them does I/O."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antipode import current
from antipode.shim import (
    count,
    log_once,
    mark_incomplete,
    record_sent,
    scope_in,
    stored_text,
    unscoped,
)
from antipode_shims.sns._clients.received import LABELS
from antipode_shims.sns._commands import PUBLISHING
from antipode_shims.sns._format import (
    MOST_BYTES,
    NAME,
    Received,
    labelled,
    lineage_of,
    show_checksum,
    size_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode.shim import Shim

_ASKED = "antipode_sns_asked"
#: The labelled messages of a request to a queue, which its answer gives checksums of.
_SENT = "antipode_sns_sent"


class Hooks:
    """What an instrumented client does before and after each call.

    Attributes:
        shim: what the client registered.
        datastore: the name of the topics and queues.
    """

    def __init__(self, shim: Shim, client: Any) -> None:
        """Follow the calls of *client*."""
        self.shim = shim
        self.datastore = shim.datastore
        self._client = client

    def register(self) -> None:
        """Handle the events of the client: ours see what goes out last, and comes back first."""
        for event, handler in self._handlers():
            register = "register_first" if event.startswith("after") else "register_last"
            getattr(self._client.meta.events, register)(
                event, handler, unique_id=f"antipode-{event}"
            )

    def unregister(self) -> None:
        """Undo :meth:`register`."""
        for event, handler in self._handlers():
            self._client.meta.events.unregister(event, handler, unique_id=f"antipode-{event}")

    def _handlers(self) -> tuple[tuple[str, Callable[..., None]], ...]:
        return (
            ("before-parameter-build", self._before),
            ("after-call.sqs.ReceiveMessage", self._received),
            ("after-call.sqs.SendMessage", self._sent),
            ("after-call.sqs.SendMessageBatch", self._sent),
        )

    def _before(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        """Label what is published, and ask for the label of what is received.

        Raises:
            ConfigurationError: it is published outside of a scope, and ``on_unscoped="raise"``.
        """
        operation = model.name
        if operation == "ReceiveMessage":
            self._ask(params, context)
        elif operation in PUBLISHING:
            if context.get("is_presign_request"):  # Somebody else makes it, some time.
                count("presigned", self.datastore)
                return
            if (held := scope_in()) is None:
                unscoped("write", self.datastore)
            elif held.notes is not None:  # A dry run's.
                record_sent(self.datastore)
            try:
                context[_SENT] = self._publish(operation, params)
            except Exception as error:  # noqa: BLE001 - the message goes as the application gave it
                message = "a message of %r could not be labelled: %r"
                log_once("not_labelled", self.datastore, operation, message, self.datastore, error)
                self._left_out()

    def _publish(self, operation: str, params: dict[str, Any]) -> list[Mapping[str, Any]]:
        body, batch = PUBLISHING[operation]
        messages = params[batch] if batch else [params]
        room = MOST_BYTES - sum(size_of(each, body) for each in messages)
        found = []
        for message in messages:
            found.append(self._labelled(message, room))
            room -= size_of(found[-1], body) - size_of(message, body)
        params.update({batch: found} if batch else found[0])
        return found

    def _labelled(self, message: Mapping[str, Any], room: int) -> Mapping[str, Any]:
        copied = text_of({"MessageAttributes": message.get("MessageAttributes")})
        lineage = current().merge(lineage_of(copied, self.datastore))
        found = labelled(message, stored_text(lineage), room=room)
        if found is None:
            self._left_out()
            return message
        return found

    def _left_out(self) -> None:
        """Note that a message went without its label: its consumer learns no causes."""
        count("baggage_dropped", self.datastore)
        message = "a message of %r has no room for the attribute %r: it went without"
        log_once("baggage_dropped", self.datastore, None, message, self.datastore, NAME)
        mark_incomplete(self.datastore, "size")

    def _sent(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Give the checksums of what the application sent: some verify them."""
        with suppress(Exception):  # The message is sent.
            sent = {each.get("Id"): each for each in context.get(_SENT) or ()}
            for told in parsed.get("Successful", [parsed]):
                attributes = sent[told.get("Id")].get("MessageAttributes") or {}
                if NAME in attributes:
                    show_checksum(told, attributes, _without(attributes))

    def _ask(self, params: dict[str, Any], context: dict[str, Any]) -> None:
        names: list[str] = list(params.get("MessageAttributeNames") or ())
        context[_ASKED] = NAME in names
        if NAME not in names:
            params["MessageAttributeNames"] = [*names, NAME]

    def _received(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if not isinstance(messages := parsed.get("Messages"), list):
            return
        shows = bool(context.get(_ASKED))
        parsed["Messages"] = [_noted(each, shows=shows) for each in messages]


def _noted(message: dict[str, Any], *, shows: bool) -> Received:
    """*message*, which remembers its label and does not show it, unless it was asked for."""
    found = Received(message)
    found.antipode = text_of(message)
    LABELS.note(message, found.antipode)
    attributes = message.get("MessageAttributes")
    if isinstance(attributes, dict) and NAME in attributes and not shows:
        left = _without(attributes)
        del found["MessageAttributes"]
        with suppress(Exception):  # The message is there.
            show_checksum(found, attributes, left)
        if left:
            found["MessageAttributes"] = left
    return found


def _without(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """*attributes* without ours."""
    return {name: each for name, each in attributes.items() if name != NAME}
