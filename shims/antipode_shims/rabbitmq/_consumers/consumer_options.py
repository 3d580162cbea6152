"""What a consumer was asked to do with its messages, and what follows for one of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from antipode import BarrierTimeout, ConfigurationError
from antipode.shim import error_of, names_of, one_of

from .delays import Delays, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import BarrierResult, Promise
    from antipode.shim import Names

OnMessageUnmet = Literal["defer", "wait"]
OnError = Literal["raise", "requeue", "defer", "dead_letter"]


class Rejection(Enum):
    """Dead letters are rejected: the queue has a dead-letter exchange of its own."""

    BY_REJECTION = "reject"

    def __repr__(self) -> str:
        """As it is written."""
        return "rabbitmq.BY_REJECTION"


#: For ``dead_letter=``: reject what is given up, for the queue's own dead-letter exchange.
BY_REJECTION = Rejection.BY_REJECTION


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """The arguments of a consumer; see :func:`antipode_shims.rabbitmq.consume`."""

    queue: str
    datastore: str
    on_unmet: OnMessageUnmet = "defer"
    timeout: float | None = None
    max_attempts: int = 20
    delay_s: tuple[float, float] = (0.1, 30.0)
    dead_letter: str | Rejection | None = None
    on_error: OnError = "raise"
    only: Names | None = None
    exclude: Names = ()
    prefetch: int = 10
    delay_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fulfils: Callable[..., Promise | str | None] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be done.

        Raises:
            ConfigurationError: an argument is not one of its values.
        """
        one_of("on_unmet", self.on_unmet, ("defer", "wait"))
        one_of("on_error", self.on_error, ("raise", "requeue", "defer", "dead_letter"))
        for name, text in (("queue", self.queue), ("datastore", self.datastore)):
            if not text or not isinstance(text, str):
                msg = f"{name} must be a non-empty name, not {text!r}"
                raise ConfigurationError(msg)
        for name, number in (("max_attempts", self.max_attempts), ("prefetch", self.prefetch)):
            if not isinstance(number, int) or not 1 <= number <= 65_535:  # noqa: PLR2004 - AMQP's
                msg = f"{name} must be between 1 and 65535, not {number!r}"
                raise ConfigurationError(msg)
        if (self.on_unmet == "wait") != (self.timeout is not None):
            msg = "timeout= is for on_unmet='wait', which needs it: how long one message may wait"
            raise ConfigurationError(msg)
        if self.only is not None:
            object.__setattr__(self, "only", names_of(self.only))
        object.__setattr__(self, "exclude", names_of(self.exclude))
        _ = self.delays

    @property
    def delays(self) -> Delays:
        """The delay queues."""
        return Delays(self.queue, *self.delay_s, arguments=self.delay_arguments)

    @property
    def waiting(self) -> int:
        """How many messages may wait at once: one of the prefetched goes on being judged."""
        return self.prefetch - 1 if self.on_unmet == "wait" else 0

    @property
    def grave(self) -> str | None:
        """The queue of dead letters; None where they are rejected."""
        if isinstance(self.dead_letter, Rejection):
            return None
        return self.dead_letter or within(f"antipode.dead.{self.queue}")

    def spent(self, attempts: int) -> bool:
        """Whether a message that was deferred *attempts* times may not be once more."""
        return attempts + 1 >= self.max_attempts


def hopeless(result: BarrierResult) -> bool:
    """Whether waiting longer cannot make an unmet *result* succeed."""
    return not isinstance(error_of(result), BarrierTimeout)
