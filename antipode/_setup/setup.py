"""``setup()`` and ``teardown()``."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from antipode._barrier.registry import retiring
from antipode._barrier.watcher import after_patch
from antipode._lineage.errors import ConfigurationError
from antipode._propagation import propagator
from antipode._runtime import observers
from antipode._runtime.call_site import handling
from antipode._runtime.config import config, configure
from antipode._runtime.datastores import forget_clients
from antipode._runtime.greenlets import when_patched
from antipode._runtime.imports import forget, when_imported
from antipode._runtime.metrics import log_once, logger
from antipode._runtime.ruled import NOT_OURS, follow, lack, lacks, unfollow
from antipode._runtime.switch import switchable

from .targets import ALIASES, NAMES, STORES, TARGETS, clients, uncovered
from .wanted import left_alone, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from antipode._runtime.datastores import Datastores, Rule

    from .targets import Target

_lock = threading.RLock()
#: What a thread has begun to cover, or has covered.
_covered: set[Target] = set()
_waiting: list[Callable[[], None]] = []


@switchable
def setup(*, datastores: Datastores | None = None, skip: Iterable[str] = ()) -> None:
    """Cover this process: propagation, and everything that is installed and integrated.

    That is every application of FastAPI, Starlette, Flask, Django and aiohttp's server; every
    server and channel of gRPC; every Celery application, broker of Dramatiq and queue of RQ and
    huey; every data loader of aiodataloader and Strawberry, and cached function of aiocache; every
    client of httpx, requests and aiohttp; threads, process pools and event loops. Nothing is
    imported for it: what is imported later is covered then, and what was made before is covered,
    too. It does what
    :func:`antipode.instrument` does and the ``instrument()`` of each integration, and takes the
    place of these calls; those for single objects stay, for what it does not know: an application
    that is a function, an option such as ``session=``.

    Clients of Redis, MySQL, MariaDB, PostgreSQL, MongoDB, RabbitMQ, ActiveMQ, DynamoDB, S3 and SNS
    are instrumented by the setting ``datastores`` (``ANTIPODE_DATASTORES``), which says which
    datastore is at which address; a client whose address it does not name stays as it is, and
    ``antipode doctor`` lists it. What a call for one client says goes before it.

    It logs one line: what is covered, and what is installed and is not. Idempotent: called again,
    it covers what the earlier call skipped, and clients without a name that rules name by now; it
    leaves nothing alone that is covered, and gives no client another name. Under
    ``opentelemetry-instrument`` it is called already; ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS``
    with ``antipode`` in it switches that off.

    Args:
        datastores: as ``configure(datastores=...)``, which this call is then; None: as set.
        skip: what to leave alone, of ``starlette`` (or ``fastapi``), ``flask``, ``django``,
            ``aiohttp-server``, ``grpc``, ``celery``, ``dramatiq``, ``rq``, ``huey``,
            ``aiocache``, ``aiodataloader``, ``strawberry``, ``aiohttp-client``, ``httpx``,
            ``requests``, ``threads``, ``processes``, ``asyncio``, ``redis``, ``mysql``,
            ``mongodb``, ``postgresql``, ``rabbitmq``, ``activemq``, ``dynamodb``, ``s3``,
            ``sns``.

    Raises:
        ConfigurationError: *skip* has another name, or a setting is malformed.
    """
    skipped = _names(skip)
    if datastores is not None:
        configure(datastores=datastores)
    rules = config().datastores
    propagator.instrument()
    when_patched(after_patch)
    if not wanted:
        _tell_of_late()
    every = (*TARGETS, *STORES)
    found = [each for each in every if each.installed and each.name not in skipped]
    lack({each.name for each in STORES} - {each.name for each in STORES if each.installed})
    with _lock:
        new = [each for each in found if each not in wanted]
        again = [each for each in found if each in STORES and each in _covered]
        wanted.update(new)
        left_alone.update(skipped)
    for target in new:
        if target in STORES:
            follow(target.name)
        _cover_once_imported(target)
    for module in dict.fromkeys(target.integration_module for target in again):
        import_module(module).instrument()  # Clients that were made since, and have no name.
    logger.info("%s", _report(skipped, rules))


def teardown() -> None:
    """Undo :func:`setup`, and :func:`antipode.instrument`. Idempotent.

    What runs goes on to its end: barriers and reads that wait are answered as they would have
    been, and only then is their client plain. Where another instrumentation has wrapped ours
    meanwhile, ours stays beneath it and passes through.
    """
    with _lock:
        covered = list(_covered)
        forget(_waiting)
        _waiting.clear()
        for target in wanted.intersection(STORES):
            unfollow(target.name)
        _covered.clear()
        wanted.clear()
        left_alone.clear()
    with retiring():
        for target in covered:
            _undo(target)
    forget_clients()
    propagator.uninstrument()


def _tell_of_late() -> None:
    """Warn where the first call is made by what handles a request."""
    if not (handler := handling()):
        return
    if (observer := observers.dry_run) is not None:
        observer.late()
    message = (
        "setup() is called while %s handles a request: that has no scope, and none of what it "
        "does is known. Call it first in the module that the service starts with"
    )
    log_once("late_setup", "", handler, message, handler)


def _names(skip: Iterable[str]) -> set[str]:
    given = [skip] if isinstance(skip, str) else list(skip)
    names = {ALIASES.get(name, name) for name in given}
    if unknown := sorted(names.difference(NAMES)):
        msg = f"skip={unknown} is nothing that setup() covers: it covers {', '.join(NAMES)}"
        raise ConfigurationError(msg)
    return names


def _cover_once_imported(target: Target) -> None:
    if not target.module:
        _cover(target)
        return

    def cover() -> None:
        _cover(target)

    _waiting.append(cover)
    when_imported(target.module, cover)


def _cover(target: Target) -> None:
    """Instrument *target*. Who imports it is not harmed by what goes wrong here."""
    try:
        integration = import_module(target.integration_module)
        with _lock:
            if target not in wanted or target in _covered:
                return
            _covered.add(target)
        # Without the lock: who imports waits for others that do, and those may be here.
        if target.kind:
            integration.instrument_class(_kind(target))
        else:
            integration.instrument()
        with _lock:
            left = target not in _covered
    except Exception:  # noqa: BLE001 - the application's import goes on
        with _lock:
            wanted.discard(target)
            _covered.discard(target)
        logger.warning("setup() does not cover %s", target.name, exc_info=True)
    else:
        if left:  # teardown() was called meanwhile.
            _undo(target)


def _undo(target: Target) -> None:
    integration = import_module(target.integration_module)
    if target.kind:
        integration.uninstrument_class(_kind(target))
    else:
        integration.uninstrument()


def _kind(target: Target) -> Any:  # noqa: ANN401 - a class of any framework
    return getattr(sys.modules[target.module], target.kind)


def _report(skipped: set[str], rules: Iterable[Rule]) -> str:
    """What is covered, in one line."""
    names = dict.fromkeys(each.name for each in TARGETS if each in wanted)
    parts = [f"setup() covers {', '.join(names)}"]
    if skipped:
        parts.append(f"skipped: {', '.join(sorted(skipped))}")
    if missing := uncovered():
        parts.append(f"installed and not covered: {', '.join(missing)}")
    if rules:
        named = sorted({_shown(each) for each in rules if each.datastore != NOT_OURS})
        parts.append(f"datastores: {', '.join(named)}")
        if absent := sorted({each.store for each in rules if lacks(each.store)}):
            parts.append(f"named by rules, and no client installed: {', '.join(absent)}")
    if found := clients(frozenset(rule.store for rule in rules) | skipped):
        parts.append(f"to be instrumented with the names of their datastores: {', '.join(found)}")
    return "; ".join(parts)


def _shown(rule: Rule) -> str:
    return f"{rule.datastore} ({rule.store})"
