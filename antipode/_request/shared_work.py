"""Work that is done once for several requests: what it depends on, and what each of them gets."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import ref

from opentelemetry import context as otel_context

from antipode._lineage.codec import may_be_dependency
from antipode._lineage.lineage import Lineage, with_unknown
from antipode._lineage.unmet_errors import (
    PRECEDENCE,
    IncompleteLineage,
    UnmetError,
    error_of,
)
from antipode._lineage.write_id import Incomplete, Promise
from antipode._runtime import observers

from .context import context_with, scope_in
from .gaining import Gaining

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from antipode._lineage.write_id import Dependency, PromiseName

    from .scope import Attached, Scope


_EMPTY = Lineage()
_UNKNOWN = Incomplete("", "unknown_item")


class Caller:
    """Who asks for work that others may ask for, too: what it depends on, as it asks.

    It does not keep the caller's scope: nobody may be there any more to get what the work added.

    Attributes:
        known: what it depends on, but for what its reads deferred.
        own: the promises that it fulfils itself, which the work must not wait for.
    """

    __slots__ = ("_attached", "_deferred", "_notes", "_scope", "known", "own")

    def __init__(self, scope: Scope | None = None) -> None:
        """Of *scope*; None for a caller that depends on nothing, and gets nothing."""
        self._scope = None if scope is None else ref(scope)
        self.known, self._notes = _EMPTY, frozenset[str]()
        self.own: frozenset[PromiseName] = frozenset()
        self._deferred: list[Callable[[], Lineage]] = []
        self._attached: Attached = {}
        if scope is not None:
            self.known, _, self._deferred, self._attached, _ = scope.parts()
            self.own = scope.own
            if observers.noting is not None:
                self._notes = observers.noting.notes(scope)

    @property
    def dependencies(self) -> frozenset[object]:
        """What names each dependency that it brings."""
        lineage = self.known.merge(*(sample() for sample in self._deferred))
        found = (*lineage, *lineage.promises, *self._demanded())
        return frozenset(map(_name, found))

    @property
    def marks(self) -> frozenset[Incomplete]:
        """What is known to be missing of what it depends on."""
        marks = self.known.incomplete
        unknown = any(map(may_be_dependency, self.known.unknown))
        return marks | {_UNKNOWN} if unknown else marks

    def _demanded(self) -> Iterator[Dependency]:
        """What barriers that it called want its reads to see, whatever its lineage is."""
        for each in self._attached.values():
            yield from getattr(each, "demanded", ())

    @property
    def brought(self) -> Lineage:
        """What the work starts from, with notes, but for what reads deferred."""
        if not self._notes:
            return self.known
        return with_unknown(self.known, self.known.unknown | self._notes)

    def join(self, held: Gaining) -> None:
        """Have *held* wait for what this depends on besides."""
        for sample in self._deferred:
            held.came_later(sample)
        for key, each in self._attached.items():
            held.attach(key, each)

    def lend_allowance(self, held: Gaining) -> None:
        """Have reads of *held* wait on the account of this caller's request, which is alone."""
        scope = None if self._scope is None else self._scope()
        if scope is not None:
            held.share_allowance(scope)

    def covered_by(self, others: Iterable[Caller]) -> bool:
        """Whether work for *others*, begun before this asked, saw what this depends on."""
        if self._scope is None:
            return True
        if self._deferred or any(True for _ in self._demanded()):
            return False
        known = _EMPTY.merge(*(each.known for each in others))
        return self.known.beyond(known).empty

    def is_with(self, other: Caller) -> bool:
        """Whether both are of one scope, or of none."""
        return self._scope == other._scope

    def take(self, gained: Lineage) -> None:
        """Depend on what the work added."""
        held = None if self._scope is None else self._scope()
        if held is not None and not gained.empty:
            held.merge(gained)


class SharedWork:
    """One piece of work, from its first run to the end of its last.

    Attributes:
        callers: for whom it runs now.
    """

    def __init__(self, callers: Iterable[Caller]) -> None:
        """For *callers*, who fulfil the same promises."""
        self.callers = list(callers)

    @contextmanager
    def run(self) -> Generator[Gaining]:
        """Run a block as the work: in a scope of its own that waits for what its callers do."""
        held = Gaining(_EMPTY.merge(*(each.brought for each in self.callers)))
        held.joins = True  # What is attached is its callers', and goes on there.
        held.own = self.callers[0].own if self.callers else frozenset()
        for each in self.callers:
            each.join(held)
        if self.callers and all(map(self.callers[0].is_with, self.callers)):
            self.callers[0].lend_allowance(held)
        token = otel_context.attach(context_with(held))
        try:
            yield held
        finally:
            otel_context.detach(token)
            held.end()
            held.answered = True
            if (observer := observers.dry_run) is not None:
                observer.ended()

    def unmet(self, held: Gaining, error: BaseException) -> dict[Caller, UnmetError]:
        """Who brought what was not met, with an error about that alone; they are callers no more.

        Nobody, where the work brought it itself, and where it has written: it would do so again.

        Args:
            held: the scope of the run that raised.
            error: what it raised.
        """
        found = _unmet_in(error)
        if found is None or held.wrote:
            return {}
        # What else is not met yet might have been, with more time.
        decisive = next((words for kind, words, _ in PRECEDENCE if isinstance(found, kind)), ())
        missing = frozenset(_name(each.write) for each in found.result.having(*decisive))
        marks = found.result.incomplete if isinstance(found, IncompleteLineage) else frozenset()
        blamed = {
            each: own
            for each in self.callers
            if (each.dependencies & missing or each.marks & marks)
            and (own := _about(found, each)) is not None
        }
        self.callers = [each for each in self.callers if each not in blamed]
        return blamed


def gained_by(held: Gaining) -> Lineage:
    """What the work in *held* added, for each of its callers."""
    gained = held.gained
    if observers.noting is None:
        return gained
    return with_unknown(gained, gained.unknown | observers.noting.notes(held))


def lineage_of_value() -> Lineage:
    """What a value that is put into a cache now depends on."""
    held = scope_in()
    if held is None:
        return _EMPTY
    return gained_by(held) if isinstance(held, Gaining) else held.lineage


def _name(dependency: Dependency) -> object:
    """What distinguishes a dependency, whenever it was written, and however it was learnt."""
    if isinstance(dependency, Promise):
        return dependency.name
    return dependency.datastore, dependency.key, dependency.version


def _unmet_in(error: BaseException) -> UnmetError | None:
    """The first error of a barrier or read in *error*, in its parts, and in what caused it."""
    return next((each for each in _all_of(error, set()) if isinstance(each, UnmetError)), None)


def _all_of(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        for each in getattr(error, "exceptions", ()):
            yield from _all_of(each, seen)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _about(error: UnmetError, caller: Caller) -> UnmetError | None:
    """*error* without what others brought."""
    dependencies = caller.dependencies
    result = replace(
        error.result,
        outcomes=tuple(o for o in error.result.outcomes if _name(o.write) in dependencies),
        incomplete=error.result.incomplete & caller.marks,
    )
    own = error_of(result)
    if own is not None:
        own.server = error.server
    return own
