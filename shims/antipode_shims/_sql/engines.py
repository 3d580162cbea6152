"""SQLAlchemy's engines, as Table 2 is given them."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import own_client

if TYPE_CHECKING:
    from collections.abc import Callable


def engine_of(
    engine: Any, *, asyncio: bool, store: str, drivers: str, sync_engine: Callable[[Any], Any]
) -> tuple[Any, bool]:
    """The engine that is meant, and whether it was made here.

    Args:
        engine: a SQLAlchemy engine of the right API, or a URL.
        asyncio: which API.
        store: what the database is called.
        drivers: what an asynchronous engine needs besides SQLAlchemy, as pip has it.
        sync_engine: the synchronous engine of one of either API; raises for those of others.

    Raises:
        ConfigurationError: it is neither, of another database, or SQLAlchemy or the client that
            the URL names is missing.
    """
    try:
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
    except ImportError as error:
        extra = f'"antipode-xcy[{store.lower()}]"'
        msg = f"Table 2 on {store} needs SQLAlchemy 2: pip install {extra}"
        raise ConfigurationError(msg) from error
    create, wanted, other = sqlalchemy.create_engine, sqlalchemy.Engine, "shim_async"
    if asyncio:
        create, wanted, other = *_asynchronous(drivers), "shim"
    owned = isinstance(engine, (str, sqlalchemy.URL))
    if owned:
        try:
            engine = own_client(partial(create, engine), within=sync_engine)
        except ModuleNotFoundError as error:
            msg = f"the URL of this engine needs {error.name}: pip install {error.name}"
            raise ConfigurationError(msg) from error
    if not isinstance(engine, wanted):
        msg = f"expected a {wanted.__name__} or a URL, not {type(engine).__name__}: see {other}()"
        raise ConfigurationError(msg)
    sync_engine(engine)
    return engine, owned


def _asynchronous(drivers: str) -> tuple[Any, Any]:
    """What makes asynchronous engines, and their class.

    Raises:
        ConfigurationError: greenlet is missing, which SQLAlchemy 2.1 no longer installs.
    """
    try:
        importlib.import_module("greenlet")
        ext: Any = importlib.import_module("sqlalchemy.ext.asyncio")
    except ImportError as error:
        needed = f'"SQLAlchemy[asyncio]" {drivers}'
        msg = f"SQLAlchemy's asynchronous engines need greenlet: pip install {needed}"
        raise ConfigurationError(msg) from error
    return ext.create_async_engine, ext.AsyncEngine
