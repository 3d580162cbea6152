"""What a store and a client bring to random sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from types import TracebackType

    from typing_extensions import Self

    #: What a step does, with random choices of its own.
    Act = Callable[[Any, random.Random], Awaitable[None]]
    ActT = TypeVar("ActT", bound=Act)

#: What every bench calls its store.
DATASTORE = "posts"
#: How often a step of everyday is drawn, beside one of the rare ones.
OFTEN = 8


class Fault(Exception):  # noqa: N818 - a verdict
    """What no session may show.

    Attributes:
        kind: ``lost``, ``early`` or ``broken``.
    """

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind}: {words}")
        self.kind = kind


def step(weight: int = 1) -> Callable[[ActT], ActT]:
    """Mark a method of a bench as a kind of step, which is drawn *weight* times as often as one."""

    def marked(act: ActT) -> ActT:
        act.weight = weight  # type: ignore[attr-defined]
        return act

    return marked


class Bench(ABC):
    """A client of one store, two servers, and the truth about them.

    Acts are written once, as those of an asyncio client: see `both.py`.

    Attributes:
        known: kinds that are left out, and the reason for each.
        refusals: the exceptions that the plain client raises.
        trace: what the session sent, for people.
        alarms: what the library said without need, by the kind of the step.
        asks_when_used: whether the library asks the server when a lineage is used in a transaction
            that has written: then it is used where rows have changed, and where a request ends.
    """

    asks_when_used = False

    known: ClassVar[Mapping[str, str]] = {}
    refusals: ClassVar[tuple[type[BaseException], ...]] = ()

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.alarms: Counter[str] = Counter()
        self._number = 0

    @property
    def kinds(self) -> dict[str, int]:
        """By name, how often each kind of step is drawn; without those that are known."""
        marked = {name: getattr(getattr(type(self), name), "weight", 0) for name in dir(type(self))}
        drawn = {name: weight for name, weight in marked.items() if weight}
        missing = set(self.known) - set(drawn)
        if missing:
            raise LookupError(f"there are no such steps: {sorted(missing)}")
        return {name: weight for name, weight in drawn.items() if name not in self.known}

    def number(self) -> int:
        """A number that no row has."""
        self._number += 1
        return self._number

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @abstractmethod
    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it to its end, as this client does."""

    @abstractmethod
    def open(self, choose: random.Random) -> None:
        """Begin a session: connect, with options that are drawn."""

    @abstractmethod
    def settle(self) -> None:
        """End what the request left open, as a pool does that takes a connection back."""

    @abstractmethod
    def close(self) -> None:
        """End the session."""

    @abstractmethod
    def committed(self) -> object:
        """What everybody sees at the primary, once nothing of the session runs there."""

    @abstractmethod
    def shown(self) -> object:
        """The same, at the replica."""

    @abstractmethod
    def hold(self) -> None:
        """Hold replication."""

    @abstractmethod
    def release(self) -> None:
        """Let replication go on, and wait until the replica shows everything."""
