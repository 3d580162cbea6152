"""SQLAlchemy engines: where they connect, and how each of their connections comes to mint."""

from __future__ import annotations

import importlib
import inspect
import weakref
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

from ._settings import ServerSettings
from ._sqlalchemy import EngineHooks
from ._sqlalchemy import _sync_engine as plain_engine

if TYPE_CHECKING:
    from ._base import BaseMySQLShim

_hooks: weakref.WeakKeyDictionary[BaseMySQLShim, EngineHooks] = weakref.WeakKeyDictionary()


def engine_of(engine: Any, *, asyncio: bool) -> tuple[Any, bool]:
    """The engine that is meant, and whether it was made here.

    Args:
        engine: a SQLAlchemy engine of the right face, or a URL.
        asyncio: which face.

    Raises:
        ConfigurationError: it is neither, of another database, or SQLAlchemy is missing.
    """
    try:
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
    except ImportError as error:
        msg = 'Table 2 on MySQL needs SQLAlchemy 2: pip install "antipode-xcy[mysql]"'
        raise ConfigurationError(msg) from error
    create, wanted, other = sqlalchemy.create_engine, sqlalchemy.Engine, "shim_async"
    if asyncio:
        create, wanted, other = *_asynchronous(), "shim"
    owned = isinstance(engine, (str, sqlalchemy.URL))
    if owned:
        engine = create(engine)
    if not isinstance(engine, wanted):
        msg = f"expected a {wanted.__name__} or a URL, not {type(engine).__name__}: see {other}()"
        raise ConfigurationError(msg)
    plain_engine(engine)
    return engine, owned


def _asynchronous() -> tuple[Any, Any]:
    """What makes asynchronous engines, and their class.

    Raises:
        ConfigurationError: greenlet is missing, which SQLAlchemy 2.1 no longer installs by itself.
    """
    try:
        importlib.import_module("greenlet")
        ext: Any = importlib.import_module("sqlalchemy.ext.asyncio")
    except ImportError as error:
        msg = (
            "SQLAlchemy's asynchronous engines need greenlet: pip install "
            '"SQLAlchemy[asyncio]" aiomysql'
        )
        raise ConfigurationError(msg) from error
    return ext.create_async_engine, ext.AsyncEngine


def settings_of(engine: Any) -> ServerSettings:
    """How to reach the server of *engine*, its ``connect_args`` included."""
    synchronous = plain_engine(engine)
    arguments = dict(synchronous.dialect.create_connect_args(synchronous.url)[1])
    creator = getattr(synchronous.pool, "_creator", None)
    if inspect.isfunction(creator):
        # The one place where SQLAlchemy keeps what create_engine(connect_args=...) was given.
        arguments.update(inspect.getclosurevars(creator).nonlocals.get("cparams", {}))
    named = bool(arguments.get("host") or arguments.get("unix_socket"))
    return ServerSettings.of(arguments, one_server=named)


def attach_engine(engine: Any, shim: BaseMySQLShim) -> None:
    """Let every connection of the engine's pool mint for *shim*."""
    hooks = EngineHooks(plain_engine(engine), shim)
    hooks.listen()
    _hooks[shim] = hooks


def detach_engine(shim: BaseMySQLShim) -> None:
    """Undo :func:`attach_engine`. Idempotent."""
    if (hooks := _hooks.pop(shim, None)) is not None:
        hooks.stop()
