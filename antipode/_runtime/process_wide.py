"""The clients of one store in a whole process: what the ``instrument()`` of each shim shares.

Constructors are replaced, so that a client is instrumented as it is made, by the rule that names
its address. Clients that were made before are found among the objects of the process.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import observers
from .config import config
from .datastores import described, is_own, named, rule_for, taken, unnamed
from .imports import forget, when_imported
from .metrics import log_once
from .ruled import NOT_OURS, follow, matched, nearest_to, rules_for, unfollow
from .switch import is_disabled
from .unnamed import tell_of_unnamed, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    from .datastores import Datastores, Place, Rule


#: One a store whose shim is loaded.
_every: list[ProcessWide] = []


@contextmanager
def noting_clients() -> Iterator[None]:
    """Note the clients that are made within and stay without a name. For diagnostics.

    Of the stores whose shims are loaded. They are not instrumented.
    """
    for each in [] if is_disabled() else _every:
        each.notes = True
        each.follow()
    try:
        yield
    finally:
        for each in _every:
            each.notes = False


def _objects() -> list[Any]:
    """Every object of this process, those that ``gc.freeze()`` has put aside among them."""
    if not gc.get_freeze_count():
        return gc.get_objects()
    gc.collect()  # What is garbage by now must not be put aside with the rest.
    gc.unfreeze()
    try:
        return gc.get_objects()
    finally:
        gc.freeze()


class ProcessWide:
    """What replaces the constructors of one store's clients.

    Attributes:
        on: whether clients are instrumented as they are made, by the rules.
        notes: whether those that no rule names are noted all the same.
    """

    def __init__(self, store: str, patches: Mapping[str, Callable[[ModuleType], None]]) -> None:
        """Replace nothing yet.

        Args:
            store: as the scheme of a URL names it.
            patches: what is called once each module is imported: it replaces methods by
                :meth:`after` or :meth:`before`.
        """
        self.on = self.notes = False
        self._store = store
        self._patches = patches
        self._applied: tuple[Rule, ...] | None = None
        self._waiting: list[Callable[[], None]] = []
        self._replaced: dict[tuple[Any, str], tuple[Any, Any]] = {}
        self._seen: dict[type, Callable[[Any], None]] = {}
        self._lock = threading.RLock()
        _every.append(self)

    def start(self, datastores: Datastores | None) -> None:
        """Instrument clients from now on, and those that were made and have no name. Idempotent.

        Args:
            datastores: rules that go before those of the setting; None for none.

        Raises:
            ConfigurationError: they, or the setting, are malformed.
        """
        given = () if datastores is None else taken(datastores)
        config()
        with self._lock:
            follow(self._store, given)
            self.on = True
            rules = rules_for(self._store)
            before = dict(self._seen) if rules == self._applied else {}
            self._applied = rules
        self.follow()
        self._find({kind: take for kind, take in self._seen.items() if kind not in before})

    def follow(self) -> None:
        """Replace the constructors, whether rules apply or not. Idempotent."""
        forget(self._waiting)
        self._waiting = [functools.partial(self._patch, name) for name in self._patches]
        for name, callback in zip(self._patches, self._waiting, strict=True):
            when_imported(name, callback)

    def stop(self) -> None:
        """Put back what was replaced, as far as nobody else has replaced it since.

        What stays beneath another's does nothing until it is started again.
        """
        forget(self._waiting)
        with self._lock:
            self.on = self.notes = False
            self._applied = None
            unfollow(self._store)
            for (owner, name), (original, ours) in list(self._replaced.items()):
                if vars(owner).get(name) is ours:
                    setattr(owner, name, original)
                    del self._replaced[owner, name]
            self._seen.clear()

    def _patch(self, module: str) -> None:
        try:
            self._patches[module](sys.modules[module])
        except Exception as error:  # noqa: BLE001 - the application's import goes on
            message = "clients of %s are not instrumented: %s: %s"
            log_once("process_wide", module, None, message, module, type(error).__name__, error)

    def after(self, owner: Any, name: str, then: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Call *then* with the instance after each call of a method of the class *owner*."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def method(instance: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
                found = original(instance, *args, **options)
                self.quietly(then, instance)
                return found

            return method

        self.replace(owner, name, make)
        self.see(owner, then)

    def before(self, owner: Any, name: str, first: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Call *first* with the instance before each call of a method of the class *owner*.

        Where it gives the instance another class, that one's method is what is called.
        """

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def method(instance: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
                kind = type(instance)
                self.quietly(first, instance)
                if type(instance) is not kind:
                    return getattr(instance, name)(*args, **options)
                return original(instance, *args, **options)

            return method

        self.replace(owner, name, make)
        self.see(owner, first)

    def shown(self, owner: Any, name: str, kind: type, then: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Call *then* with what is given to a class method of *owner*, instances of *kind*."""

        def make(original: Any) -> Any:  # noqa: ANN401 - a class method, before it is bound
            @functools.wraps(original.__func__)
            def method(cls: type, instance: Any) -> None:  # noqa: ANN401
                original.__get__(None, cls)(instance)
                self.quietly(then, instance)

            return classmethod(method)

        self.replace(owner, name, make)
        self.see(kind, then)

    def replace(
        self,
        owner: Any,  # noqa: ANN401 - a class of any client
        name: str,
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        """Replace a method of the class *owner* by what *make* makes of it. Idempotent."""
        with self._lock:
            if (owner, name) not in self._replaced:
                original = vars(owner)[name]
                ours = make(original)
                setattr(owner, name, ours)
                self._replaced[owner, name] = original, ours

    def see(self, kind: type, take: Callable[[Any], None]) -> None:
        """Call *take* with each instance of *kind* that was made before."""
        if self.on:
            self._seen[kind] = take

    def _find(self, kinds: Mapping[type, Callable[[Any], None]]) -> None:
        """Have the instances of *kinds* seen that were made before."""
        # By type(): isinstance() would have lazy objects of others make what they stand for.
        for each in _objects() if kinds else ():
            for kind, take in kinds.items():
                if issubclass(type(each), kind):
                    self.quietly(take, each)

    def quietly(self, action: Callable[..., None], *args: Any) -> None:  # noqa: ANN401
        """Do *action*: what goes wrong is logged, and the application's call goes on."""
        try:
            action(*args)
        except Exception as error:  # noqa: BLE001 - the application makes its client
            message = "a client of %s is not instrumented: %s: %s"
            kind = type(error).__name__
            log_once("process_wide", self._store, None, message, self._store, kind, error)

    def cover(
        self,
        client: Any,  # noqa: ANN401 - of any library
        places: Iterable[Place],
        database: str | None,
        take: Callable[[Rule], None],
        *,
        peer: Place | None = None,
    ) -> None:
        """Instrument *client* by the rule that names its address; who makes it is not harmed.

        Where rules are for its kind and none is for its address, that is counted, and warned of
        once.

        Args:
            client: what was made.
            places: its addresses.
            database: its number, schema or virtual host; None where it is not known.
            take: instruments it.
            peer: the address that it is connected to; None where that is not known.
        """
        if is_own(client) or not (self.on or self.notes):
            return
        found = tuple(places)
        where = described(self._store, found[0], database) if found else self._store
        try:
            rules = rules_for(self._store) if self.on else ()
            rule = rule_for(rules, self._store, found, database)
            if rule is not None:
                if rule.datastore != NOT_OURS:
                    take(rule)
                matched(rule, peer)
                if (observer := observers.dry_run) is not None:
                    observer.matched(rule)
                named(client)
                return
            entry = url_of(self._store, found[0], database) if found else ""
            unnamed(client, where, entry)
            if entry and self.on:
                nearest = nearest_to(self._store, found[0], database, peer)
                if (observer := observers.dry_run) is not None:
                    name = nearest[0].datastore if nearest and nearest[1] else "NAME"
                    observer.unnamed(where, f"{name}={entry}", ruled=bool(rules))
                if rules:
                    tell_of_unnamed(self._store, found[0], database, nearest)
        except Exception as error:  # noqa: BLE001 - the application makes its client
            message = "a client of %s is not instrumented: %s: %s"
            log_once("process_wide", where, None, message, where, type(error).__name__, error)
            unnamed(client, where)
