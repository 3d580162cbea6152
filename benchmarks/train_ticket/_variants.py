"""What is done so that a user who cancelled finds the refund."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

VariantName = Literal["baseline", "propagation", "answer", "look-up", "automatic", "unguarded"]


class TrainTicketError(Exception):
    """Something that the benchmark needs is missing or does not work; the message says what."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the application.

    Attributes:
        name: for reports and options.
        library: whether Antipode is there at all; without it the services know nothing of it.
        cancel: settings of the service that cancels.
        look_up: settings of the service at which the user looks.
        agent: whether OpenTelemetry's own Java agent propagates its context, and does nothing else.
        said: what it does, in a sentence.
    """

    name: VariantName
    library: bool
    said: str
    cancel: tuple[str, ...] = field(default=())
    look_up: tuple[str, ...] = field(default=())
    agent: bool = False

    @property
    def kind(self) -> str:
        """What services have in common that variants share."""
        if self.library:
            return "antipode"
        return "propagation" if self.agent else "baseline"


BASELINE: Final = Variant("baseline", library=False, said="no library, no metadata")
#: What a lineage travels by is there without the library, too: what that alone costs.
PROPAGATION: Final = Variant(
    "propagation",
    library=False,
    agent=True,
    said="no library, OpenTelemetry's agent propagates",
)
ANSWER: Final = Variant(
    "answer",
    library=True,
    said="a barrier before the answer",
    cancel=("--train-ticket.barrier-before-answer=true",),
)
LOOK_UP: Final = Variant(
    "look-up",
    library=True,
    said="a barrier where the refund is shown",
    look_up=("--train-ticket.barrier-at-look-up=true",),
)
AUTOMATIC: Final = Variant(
    "automatic",
    library=True,
    said="automatic barriers",
    look_up=("--antipode.barriers=auto",),
)
#: The library is there, and its barrier is not: for a dry run, which finds the place.
UNGUARDED: Final = Variant("unguarded", library=True, said="no barrier")

VARIANTS: Final = {
    it.name: it for it in (BASELINE, PROPAGATION, ANSWER, LOOK_UP, AUTOMATIC, UNGUARDED)
}
NAMES: Final[tuple[VariantName, ...]] = get_args(VariantName)
#: Those that are compared.
COMPARED: Final[tuple[VariantName, ...]] = ("baseline", "answer", "look-up", "automatic")
