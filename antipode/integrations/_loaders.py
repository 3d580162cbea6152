"""Data loaders: what requests load at once is loaded in one scope that depends on what they do.

Each future that a loader hands out while it loads is its caller's own: a caller whose
dependencies are not met gets its error there, and the others get their values. A value that a
loader caches keeps what it depends on, and whoever gets it then depends on that, too.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from antipode import Lineage
from antipode._request.context import scope_in
from antipode._request.shared_work import Caller, SharedWork, gained_by, lineage_of_value

from ._method import Method, not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from antipode._request.gaining import Gaining

    Tenant = Callable[[Any], Hashable]
    Future = asyncio.Future[Any]

_EMPTY = Lineage()


class Asked:
    """What is being loaded for one key: who asked, each with a future of its own."""

    def __init__(self, inner: Future, group: Hashable) -> None:
        """Resolve their futures as *inner*, the loader's, is."""
        self.group = group
        #: The work that loads it, once that began.
        self.work: SharedWork | None = None
        self.gained = _EMPTY
        self._inner = ref(inner)  # By which it is found: it must not keep that.
        self._futures: dict[Caller, Future] = {}
        if not inner.done():
            inner.add_done_callback(self._resolve)

    @property
    def callers(self) -> list[Caller]:
        """Those who are there still."""
        return [each for each, future in self._futures.items() if not future.done()]

    def takes(self, caller: Caller, group: Hashable) -> bool:
        """Whether what is loaded is for *caller*, too: it did not begin before, or knows enough."""
        work = self.work
        return group == self.group and (work is None or caller.covered_by(work.callers))

    def join(self, caller: Caller, loop: asyncio.AbstractEventLoop) -> Future:
        """The future of *caller*; the one that its scope has already, if any."""
        if self.work is not None:
            self.work.callers.append(caller)
        found = next((self._futures[each] for each in self.callers if each.is_with(caller)), None)
        if found is None:
            found = loop.create_future()
            found.add_done_callback(self._left)
        self._futures[caller] = found
        return found

    def fail(self, caller: Caller, error: Exception) -> bool:
        """What *caller* depends on is not met; whether it asked for this."""
        future = self._futures.get(caller)
        if future is not None and not future.done():
            future.set_exception(error)
        return future is not None

    def _left(self, _: Future) -> None:
        inner = self._inner()
        if inner is not None and all(each.cancelled() for each in self._futures.values()):
            inner.cancel()  # As where the loader's own is cancelled.

    def _resolve(self, inner: Future) -> None:
        """Have each caller depend on what was added, before it goes on."""
        error = None if inner.cancelled() else inner.exception()
        for caller, future in self._futures.items():
            if future.done():
                continue
            caller.take(self.gained)
            if inner.cancelled():
                future.cancel()
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(inner.result())
        self._futures.clear()


class Loaders:
    """All data loaders of one library, while it is instrumented."""

    def __init__(self, module: Any, dispatch: str, function: str) -> None:
        """Nothing changes yet.

        Args:
            module: the library's, with its class ``DataLoader``.
            dispatch: its function that loads a batch, given the loader and the batch.
            function: the attribute of a loader that is the application's function.
        """
        self.tenant: Tenant | None = None
        self.function = function
        self._module, self._dispatch = module, dispatch
        #: By the loaders' futures, as long as these cache them.
        self._asked: WeakKeyDictionary[Future, Asked] = WeakKeyDictionary()
        self._original: Any = None
        kind = module.DataLoader
        self._methods = [Method(kind, "load", self._load)]
        for name in ("prime", "prime_many"):
            if hasattr(kind, name):
                self._methods.append(Method(kind, name, self._prime))

    @property
    def active(self) -> bool:
        """Whether loaders are instrumented."""
        return self._methods[0].active

    def futures_of(self, batch: Any) -> list[Future]:
        """The loader's futures of the keys of *batch*, in their order."""
        raise NotImplementedError

    def cached(self, loader: Any, key: Any) -> Future | None:
        """The future that *loader* has for *key*."""
        raise NotImplementedError

    def instrument(self, tenant: Tenant | None) -> None:
        """Share what loaders load, by those for whom *tenant* is equal. Idempotent."""
        self.tenant = tenant
        for method in self._methods:
            method.wrap()
        if (found := getattr(self._module, self._dispatch)) != self._load_batch:
            self._original = found
            setattr(self._module, self._dispatch, self._load_batch)

    def uninstrument(self) -> None:
        """Undo :meth:`instrument`. Idempotent; what is being loaded is loaded to its end."""
        for method in self._methods:
            method.unwrap()
        if getattr(self._module, self._dispatch) == self._load_batch:
            setattr(self._module, self._dispatch, self._original)

    def _load(
        self, call: Callable[..., Future], loader: Any, args: Any, kwargs: dict[str, Any]
    ) -> Future:
        """A loader's ``load``."""
        key = args[0] if args else kwargs["key"]
        caller = Caller(scope_in())
        group = None if self.tenant is None else self.tenant(key), caller.own
        inner = call(*args, **kwargs)
        asked = self._asked.get(inner)
        if inner.done() and not inner.cancelled():
            caller.take(_EMPTY if asked is None else asked.gained)
            return inner
        if asked is not None and (inner.cancelled() or not asked.takes(caller, group)):
            self.forget(loader, key, asked)  # It began before this was asked, or for others.
            inner = call(*args, **kwargs)
            asked = self._asked.get(inner)
        if asked is None:
            asked = self._asked[inner] = Asked(inner, group)
        return asked.join(caller, inner.get_loop())

    def _prime(
        self, call: Callable[..., Any], loader: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """A loader's ``prime``: a value that somebody puts into its cache."""
        found = args[0] if args else kwargs.get("data", kwargs.get("key"))
        keys = found if isinstance(found, dict) else [found]
        there = [self.cached(loader, key) for key in keys]
        there_before = {id(each) for each in there if each is not None and each.done()}
        answer, lineage = call(*args, **kwargs), lineage_of_value()
        for future in (*there, *(self.cached(loader, key) for key in keys)):
            if future is not None and future.done() and id(future) not in there_before:
                self._of(future).gained = lineage  # Made now, or to be loaded until now.
        return answer

    async def _load_batch(self, loader: Any, batch: Any) -> None:
        """The library's loading of a batch, with the application's function called our way."""
        shown = _StandIn(self, loader, batch) if self.active else loader
        await self._original(shown, batch)

    async def values(self, loader: Any, keys: Sequence[Any], batch: Any) -> list[Any]:
        """What the application's function returns for *keys*, in scopes of those who asked."""
        asked = [self._of(each) for each in self.futures_of(batch)]
        loads: dict[Hashable, _Load] = {}
        for key, each in zip(keys, asked, strict=True):
            load = loads.setdefault(each.group, _Load(self, loader))
            load.asked[each] = key
        if len(loads) == 1:
            return await loads[asked[0].group].values()
        found: dict[Asked, Any] = {}
        runs = (each.values() for each in loads.values())
        for load, values in zip(
            loads.values(), await asyncio.gather(*runs, return_exceptions=True), strict=True
        ):
            if isinstance(values, BaseException):
                for each, key in load.asked.items():
                    self.forget(loader, key, each)
                    found[each] = values
            elif len(values) != len(load.asked):
                return values  # The library says what is wrong with that.
            else:
                found.update(zip(load.asked, values, strict=True))
        return [found[each] for each in asked]

    def forget(self, loader: Any, key: Any, asked: Asked) -> None:
        """Have *loader* load *key* again, where what it has is *asked*."""
        future = self.cached(loader, key)
        if future is not None and self._asked.get(future) is asked:
            loader.clear(key)

    def _of(self, future: Future) -> Asked:
        asked = self._asked.get(future)
        if asked is None:  # Nobody asked through us.
            asked = self._asked[future] = Asked(future, None)
        return asked


class Integration:
    """What is instrumented of one library, in a process."""

    def __init__(
        self, extra: str, library: str, module: str, make: Callable[[Any], Loaders]
    ) -> None:
        """Nothing is imported yet.

        Args:
            extra: the pip extra.
            library: its name for people.
            module: its module with the class ``DataLoader``.
            make: its loaders, from that module.
        """
        self._extra, self._library, self._module, self._make = extra, library, module, make
        self._loaders: Loaders | None = None

    @property
    def active(self) -> bool:
        """Whether its loaders are instrumented."""
        return self._loaders is not None and self._loaders.active

    def instrument(self, tenant: Tenant | None) -> None:
        """As :meth:`Loaders.instrument`.

        Raises:
            ConfigurationError: the library is not installed.
        """
        try:
            module = import_module(self._module)
        except ImportError as error:
            raise not_installed(self._library, self._extra) from error
        if self._loaders is None:
            self._loaders = self._make(module)
        self._loaders.instrument(tenant)

    def uninstrument(self) -> None:
        """As :meth:`Loaders.uninstrument`."""
        if self._loaders is not None:
            self._loaders.uninstrument()


class _Load:
    """What is loaded at once: keys whose callers go together."""

    def __init__(self, loaders: Loaders, loader: Any) -> None:
        self._loaders, self._loader = loaders, loader
        self._function = getattr(loader, loaders.function)
        self.asked: dict[Asked, Any] = {}

    async def values(self) -> list[Any]:
        """A value for each key, or an error; run again for those who did not bring about one."""
        work = SharedWork(caller for each in self.asked for caller in each.callers)
        for each in self.asked:
            each.work = work
        lost: dict[Asked, Any] = {}
        values: list[Any] = []
        while len(lost) < len(self.asked):
            now = [each for each in self.asked if each not in lost]
            with work.run() as held:
                try:
                    values = list(await self._function([self.asked[each] for each in now]))
                except Exception as error:
                    if unmet := work.unmet(held, error):
                        lost.update(self._failed(now, unmet))
                        continue
                    self._gained(now, held)
                    raise
            self._gained(now, held)
            if len(values) != len(now):
                break
            found = dict(zip(now, values, strict=True))
            return [lost[each] if each in lost else found[each] for each in self.asked]
        return values or list(lost.values())

    def _failed(self, now: list[Asked], unmet: dict[Caller, Any]) -> dict[Asked, Any]:
        """Those of *now* whom nobody asks for any more, with the last one's error."""
        lost = {}
        for each in now:
            for caller, error in unmet.items():
                if each.fail(caller, error) and not each.callers:
                    lost[each] = error
                    self._loaders.forget(self._loader, self.asked[each], each)
        return lost

    @staticmethod
    def _gained(now: list[Asked], held: Gaining) -> None:
        gained = gained_by(held)
        for each in now:
            each.gained = gained


class _StandIn:
    """A loader as its library's own loading of a batch sees it: the function goes our way."""

    def __init__(self, loaders: Loaders, loader: Any, batch: Any) -> None:
        self._loader = loader

        async def values(keys: Sequence[Any]) -> list[Any]:
            return await loaders.values(loader, keys, batch)

        setattr(self, loaders.function, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
