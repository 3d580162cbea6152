"""What an instrumented channel carries: its names, and what of it was replaced."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode.shim import count, log_once, mark_incomplete, record_write, shims_of
from antipode_shims._messages.headers import may_exceed, outgoing, shortened
from antipode_shims.rabbitmq._table2 import BaseRabbitMQShim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import WriteId
    from antipode_shims._messages.publisher import Publications

ATTRIBUTE = "_antipode"
#: What a frame of properties has besides: its head and end, and what comes before the properties.
AROUND_PROPERTIES = 20
_ABSENT = object()


def fitting(
    sent: dict[str, Any], *, room: int, size: Callable[[dict[str, Any]], int]
) -> dict[str, Any] | None:
    """*sent*, headers with ours, with the lineage cut to what one frame has room for.

    Args:
        sent: of :func:`outgoing`.
        room: how many bytes of properties a frame of the connection takes; no limit where that
            is nothing.
        size: how many the message's have with other headers.

    Returns:
        None where not even the lineage's mark fits.
    """
    if room <= 0 or not may_exceed(sent, room):
        return sent
    excess = size(sent) - room
    return sent if excess <= 0 else shortened(sent, excess)


def stored(
    sent: dict[str, Any], *, room: int, size: Callable[[dict[str, Any]], int]
) -> dict[str, Any]:
    """The same for what Table 2 writes, which never goes without its lineage.

    Raises:
        ValueError: there is no room for it; nothing was sent.
    """
    fits = fitting(sent, room=room, size=size)
    if fits is None:
        msg = "the properties of the message leave its lineage no room in its frame"
        raise ValueError(msg)
    return fits


@dataclass(slots=True)
class State:
    """The instrumentation of one channel.

    Attributes:
        publications: names what is published; a new one for each opening of the channel.
        receipts: record unconfirmed publications as well, for readers can know whether they came.
        exchange: the one that receipts listen to; None where nobody said.
        active: False once it is undone; replaced functions that others still hold then do
            nothing of ours.
        transactional: the channel is in ``tx`` mode: nothing is known of a publication.
    """

    publications: Publications
    receipts: bool = False
    exchange: str | None = None
    active: bool = True
    transactional: bool = False
    _replaced: list[tuple[Any, str, object, object]] = field(default_factory=list)
    _inner: tuple[Any, State] | None = None

    @property
    def datastore(self) -> str:
        """The datastore that publications are writes of."""
        return self.publications.datastore

    def attach(self, channel: Any) -> None:
        """Make *channel* carry this."""
        setattr(channel, ATTRIBUTE, self)

    def opened(self, channel: Any, state: State) -> None:
        """Note the channel that this one publishes through at present, and its own state."""
        state.attach(channel)
        self._inner = channel, state

    def detach(self, channel: Any) -> None:
        """Undo everything, here and in the channel that this one publishes through."""
        if self._inner is not None:
            inner, state = self._inner
            state.detach(inner)
            self._inner = None
        self._undo()
        delattr(channel, ATTRIBUTE)

    def replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        """Make *function* the attribute *name* of this one *owner*."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, function)
        self._replaced.append((owner, name, before, function))

    def _undo(self) -> None:
        """Put back what was replaced, unless somebody else replaced it since."""
        self.active = False
        while self._replaced:
            owner, name, before, function = self._replaced.pop()
            if vars(owner).get(name) is not function:
                continue
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def hears(self, exchange: str) -> bool:
        """Whether receipts can show what is published to *exchange*: it is a write then.

        No tap can be bound to the default exchange.
        """
        shims = shims_of(self.datastore)
        here = [each for each in shims if isinstance(each, BaseRabbitMQShim) and each.waitable]
        if self.exchange is not None:
            heard = exchange == self.exchange
        elif here:
            heard = any(shim.hears(exchange) for shim in here)
        else:
            heard = bool(exchange)
        if not heard:
            count("unheard_publish", self.datastore)
        return heard

    def name(self, exchange: str, routing_key: str, *, confirmed: bool) -> WriteId | None:
        """The name of the next publication; None for one that must not be recorded.

        Nothing is known of an unconfirmed publication, so that it is recorded only where readers
        have receipts; of one in a transaction not even that it was sent, so that it is in doubt
        there.
        """
        if confirmed and not self.transactional:
            return self.publications.next(exchange, routing_key)
        count("unconfirmed_publish", self.datastore)
        if not self.has_receipts():
            return None
        if self.transactional:
            mark_incomplete(self.datastore, "in_doubt")
            return None
        return self.publications.next(exchange, routing_key)

    def has_receipts(self) -> bool:
        """Whether readers of the datastore can know what was routed to them."""
        return self.receipts or any(shim.waitable for shim in shims_of(self.datastore))

    def headers(
        self,
        headers: Mapping[str, Any] | None,
        write: WriteId | None,
        *,
        destination: str,
        room: int,
        size: Callable[[dict[str, Any]], int],
    ) -> tuple[Mapping[str, Any] | None, WriteId | None]:
        """The headers to send instead of the application's, and the name that they have.

        The lineage is cut to what one frame has room for. Where not even its mark fits, the
        message goes as the application gave it, without a name.

        Args:
            headers: the application's.
            write: the message's own write; None for one that is not recorded.
            destination: to where it is published.
            room: how many bytes of properties a frame of the connection takes; no limit where
                that is nothing.
            size: how many the message's have with other headers.
        """
        sent = outgoing(headers, datastore=self.datastore, write=write, destination=destination)
        if sent is None:
            return None, write
        fits = fitting(sent, room=room, size=size)
        if fits is not None:
            return fits, write
        self._unfit(write)
        return headers, None

    def _unfit(self, write: WriteId | None) -> None:
        """A message goes without its lineage and its name: both do not fit in its frame."""
        count("baggage_dropped", self.datastore)
        log_once(
            "baggage_dropped",
            self.datastore,
            "frame",
            "the headers of a message to %r fill its frame: it was sent without its lineage and "
            "its name. Use larger frames (frame_max), or shorter headers",
            self.datastore,
        )
        if write is not None:
            self.publications.void(write)
            mark_incomplete(self.datastore, "unsampled")

    def minted(self, write: WriteId | None) -> None:
        """The broker has the message."""
        if write is not None:
            record_write(write)

    def refused(self, write: WriteId | None) -> None:
        """The broker does not have the message, or routed it nowhere: nothing enters."""
        if write is not None:
            self.publications.void(write)

    def in_doubt(self, write: WriteId | None) -> None:
        """The broker may have the message."""
        mark_incomplete(self.datastore, "in_doubt")
        if write is not None:
            self.publications.void(write)


def state_of(channel: Any) -> State | None:
    """The instrumentation of *channel*; None without one."""
    found = getattr(channel, "__dict__", {}).get(ATTRIBUTE)
    return found if isinstance(found, State) else None
