"""``instrument``: every client of redis-py in this process, by its address or its pool."""

from __future__ import annotations

import functools
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import (
    ProcessWide,
    named_client,
    own_client,
    place_of,
    register,
    sentinel_place,
    shims_of,
    switchable,
)
from antipode_shims.redis._instrument import (
    InstrumentedShim,
    attach,
    detach,
    implied,
    pool_listeners,
    pools,
)

from .redis_py import check_client
from .sentinel import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from antipode.shim import Datastores, Rule

_PORT = 6379
_SENTINEL_PORT = 26379
_shims: dict[Hashable, InstrumentedShim] = {}
#: Of rules that name a service alone, the Sentinels that watch it.
_deployments: dict[Rule, set[tuple[str, int]]] = {}
_lock = threading.Lock()


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every client whose address a rule names, made before or made later. Idempotent.

    So the clients that frameworks make are instrumented, each as :func:`instrument_client` does
    it with ``datastore`` and ``reads_from``. A client of Sentinel goes by the name of its service,
    as in ``posts=redis+sentinel://mymaster``; it reads where ``slave_for`` or ``master_for`` says.
    What a call for one client says goes before the rules. Clients of other addresses stay as they
    are.

    Args:
        datastores: rules for this store, such as ``{"feed": ["redis://cache:6379/0",
            "redis://replica:6379/0?reads_from=replica"]}``; they go before those of
            ``configure(datastores=...)`` and ``ANTIPODE_DATASTORES``. None: those alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; clients that were instrumented by a call stay so. Idempotent."""
    _wide.stop()
    with _lock:
        left = set(_shims.values())
        _shims.clear()
        _deployments.clear()
    for client in list(implied):
        if client._antipode.shim in left:  # noqa: SLF001
            detach(client)
            implied.discard(client)
    for shim in left:
        shim.close()
    if pools:
        _follow_pools()


def _made(client: Any) -> None:
    """A client was made, and does not come from another one."""
    hooks = getattr(client, "_antipode", None)
    if hooks is not None and not hooks.staying.over:
        return
    pool = client.connection_pool
    shim = pools.get(pool)
    if shim is not None and shim in shims_of(shim.datastore):
        attach(client, shim, is_async=check_client(client))
        implied.add(client)
        return
    places, database = _address(pool)
    _wide.cover(client, places, database, partial(_take, client))


def _address(pool: Any) -> tuple[list[tuple[str, int]], str]:
    arguments = pool.connection_kwargs
    database = str(arguments.get("db") or 0)
    if service := getattr(pool, "service_name", ""):
        watching = pool.sentinel_manager.sentinels
        for each in watching:
            named_client(each)  # It asks where the server is, and has no data.
        places = [sentinel_place(service, *_sentinel(each)) for each in watching]
        return [*places, sentinel_place(service)], database
    if path := arguments.get("path"):
        return [(path, 0)], database
    return [_place(arguments, _PORT)], database


def _sentinel(client: Any) -> tuple[str, int]:
    """The address of a Sentinel."""
    return _place(client.connection_pool.connection_kwargs, _SENTINEL_PORT)


def _place(arguments: Any, port: int) -> tuple[str, int]:
    return place_of(arguments.get("host"), int(arguments.get("port") or port))


def _require_one_deployment(client: Any, rule: Rule) -> None:
    """Refuse a service of a known name that others than before watch, where the rule has no more.

    Raises:
        ConfigurationError: none of its Sentinels is one that was seen.
    """
    pool = client.connection_pool
    service = getattr(pool, "service_name", "")
    if not service or sentinel_place(service) not in rule.places:
        return
    by = {sentinel_place(service, *_sentinel(each)) for each in pool.sentinel_manager.sentinels}
    with _lock:
        seen = _deployments.setdefault(rule, set())
        if not seen or seen & by:
            seen |= by
            return
    addresses = map(_sentinel, pool.sentinel_manager.sentinels)
    hosts = ",".join(f"{host}:{port}" for host, port in addresses)
    msg = (
        f"other Sentinels watch another {service!r}, and {rule.datastore!r} is the one that was "
        f"seen first: name each by its Sentinels, as in NAME=redis+sentinel://{hosts}/{service}"
    )
    raise ConfigurationError(msg)


def _take(client: Any, rule: Rule) -> None:
    _require_one_deployment(client, rule)
    is_async = check_client(client)
    attach(client, _shared(client, rule), is_async=is_async)
    implied.add(client)


def _shared(client: Any, rule: Rule) -> InstrumentedShim:
    """One shim for all clients that reach one server alike, however many a framework makes."""
    pool = client.connection_pool
    reads_from: Any = rule.reads_from or (
        "primary" if getattr(pool, "is_master", True) else "replica"
    )
    settings = settings_of(client, reads_from)
    key = rule, reads_from, settings.where, pool.connection_kwargs.get("username")
    with _lock:
        shim = _shims.get(key)
        if shim is None or shim not in shims_of(shim.datastore):
            shim = InstrumentedShim(
                rule.datastore, settings, reads_from=reads_from, one_server=rule.one_server
            )
            register(shim)
            _shims[key] = shim
    return shim


def _patch(module: Any) -> None:
    _wide.after(module.Redis, "__init__", _made)


def _patch_sentinel(module: Any) -> None:
    _wide.replace(module.Sentinel, "__init__", _watching)


def _watching(original: Callable[..., None]) -> Callable[..., None]:
    """The clients of Sentinels themselves have no data: no rule is for them."""

    @functools.wraps(original)
    def init(manager: Any, *args: Any, **options: Any) -> None:
        own_client(lambda: original(manager, *args, **options), within=lambda _: manager)

    return init


_wide = ProcessWide(
    "redis",
    {
        "redis.client": _patch,
        "redis.asyncio.client": _patch,
        "redis.sentinel": _patch_sentinel,
        "redis.asyncio.sentinel": _patch_sentinel,
    },
)


def _follow_pools() -> None:
    """Have clients that are made on a pool of an instrumented client instrumented, too."""
    _wide.follow()


pool_listeners.append(_follow_pools)
