"""``setup()`` and ``teardown()``."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from antipode._lineage.errors import ConfigurationError
from antipode._propagation import propagator
from antipode._runtime.config import config
from antipode._runtime.datastores import forget_clients
from antipode._runtime.imports import forget, when_imported
from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable

from .targets import ALIASES, NAMES, STORES, TARGETS, clients, uncovered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from antipode._runtime.datastores import Rule

    from .targets import Target

_lock = threading.RLock()
_wanted: set[Target] = set()
_covered: set[Target] = set()
_waiting: list[Callable[[], None]] = []


@switchable
def setup(*, skip: Iterable[str] = ()) -> None:
    """Cover this process: propagation, and everything that is installed and integrated.

    That is every application of FastAPI, Starlette, Flask, Django and aiohttp's server; every
    server and channel of gRPC; every Celery application; every client of httpx, requests and
    aiohttp; threads, process pools and event loops. Nothing is imported for it: what is imported
    later is covered then, and what was made before is covered, too. It does what
    :func:`antipode.instrument` does and the ``instrument()`` of each integration, and takes the
    place of these calls; those for single objects stay, for what it does not know: an application
    that is a function, an option such as ``session=``.

    Clients of Redis, MySQL, MariaDB, PostgreSQL, MongoDB, RabbitMQ, ActiveMQ, DynamoDB, S3 and SNS
    are instrumented by the setting ``datastores`` (``ANTIPODE_DATASTORES``), which says which
    datastore is at which address; a client whose address it does not name stays as it is, and
    ``antipode doctor`` lists it. What a call for one client says goes before it.

    It logs one line: what is covered, and what is installed and is not. Idempotent. Under
    ``opentelemetry-instrument`` it is called already; ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS``
    with ``antipode`` in it switches that off.

    Args:
        skip: what to leave alone, of ``starlette`` (or ``fastapi``), ``flask``, ``django``,
            ``aiohttp-server``, ``grpc``, ``celery``, ``aiohttp-client``, ``httpx``, ``requests``,
            ``threads``, ``processes``, ``asyncio``, ``redis``, ``mysql``, ``mongodb``,
            ``postgresql``, ``rabbitmq``, ``activemq``, ``dynamodb``, ``s3``, ``sns``.

    Raises:
        ConfigurationError: *skip* has another name, or a setting is malformed.
    """
    skipped = _names(skip)
    rules = config().datastores
    propagator.instrument()
    with _lock:
        every = (*TARGETS, *STORES)
        found = [each for each in every if each.installed and each.name not in skipped]
        new = [each for each in found if each not in _wanted]
        _wanted.update(new)
    for target in new:
        _cover_once_imported(target)
    logger.info("%s", _report(skipped, rules))


def teardown() -> None:
    """Undo :func:`setup`, and :func:`antipode.instrument`. Idempotent.

    What runs goes on to its end. Where another instrumentation has wrapped ours meanwhile, ours
    stays beneath it and passes through.
    """
    with _lock:
        for target in _covered:
            _undo(target)
        forget(_waiting)
        _waiting.clear()
        _covered.clear()
        _wanted.clear()
    forget_clients()
    propagator.uninstrument()


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
        # Without the lock: a thread that imports waits for others that do.
        integration = import_module(target.integration_module)
        with _lock:
            if target not in _wanted or target in _covered:
                return
            if target.kind:
                integration.instrument_class(_kind(target))
            else:
                integration.instrument()
            _covered.add(target)
    except Exception:  # noqa: BLE001 - the application's import goes on
        _wanted.discard(target)
        logger.warning("setup() does not cover %s", target.name, exc_info=True)


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
    names = dict.fromkeys(each.name for each in TARGETS if each in _wanted)
    parts = [f"setup() covers {', '.join(names)}"]
    if skipped:
        parts.append(f"skipped: {', '.join(sorted(skipped))}")
    if missing := uncovered():
        parts.append(f"installed and not covered: {', '.join(missing)}")
    if rules:
        parts.append(f"datastores: {', '.join(sorted({_shown(each) for each in rules}))}")
    if found := clients(frozenset(rule.store for rule in rules) | skipped):
        parts.append(f"to be instrumented with the names of their datastores: {', '.join(found)}")
    return "; ".join(parts)


def _shown(rule: Rule) -> str:
    return f"{rule.datastore} ({rule.store})"
