"""SQLAlchemy engines of PostgreSQL, instrumented or of Table 2."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import stored_names, switchable
from antipode_shims._sql import engines
from antipode_shims._sql.promises import TABLE
from antipode_shims._sql.sqlalchemy import EngineHooks, Engines
from antipode_shims.postgresql import _instrument
from antipode_shims.postgresql._endpoint import ServerSettings
from antipode_shims.postgresql._instrument import NO_ROWS, made
from antipode_shims.postgresql._shim.base import BasePostgreSQLShim

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom
    from antipode_shims._sql.connections import Connections

EngineT = TypeVar("EngineT")

_STORING = ("psycopg", "psycopg_async")
_DRIVERS = (*_STORING, "psycopg2", "asyncpg")


class PostgreSQLEngineHooks(EngineHooks[BasePostgreSQLShim]):
    """What listens to an engine of PostgreSQL."""

    connections: ClassVar[Connections] = _instrument

    def connects(self, dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        """Choose the class of psycopg2's connection, which it has from the start."""
        del record
        if dialect.driver == "psycopg2":
            native: Any = importlib.import_module("antipode_shims.postgresql._clients.psycopg2")
            base = options.get("connection_factory") or native.plain_connections()
            options["connection_factory"] = native.connections(base)
        self.shim.settings = _with(arguments, options, one_server=self.shim.can_poll)


def is_supported(engine: Any) -> bool:
    """Whether *engine*, a plain one, is of PostgreSQL and a client that is supported."""
    return engine.dialect.name == "postgresql" and engine.dialect.driver in _DRIVERS


#: The engines that this process has instrumented.
instrumented = Engines(
    PostgreSQLEngineHooks,
    is_supported=is_supported,
    advice="use postgresql+psycopg, postgresql+psycopg2 or postgresql+asyncpg",
)


@switchable
def instrument_engine(
    engine: EngineT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    one_server: bool | None = None,
    promise_table: str = TABLE,
    readonly_functions: Collection[str] = (),
    lineage: Literal["none", "beside"] = "none",
    tables: Collection[str] = (),
    on_read: OnRead = "merge",
    barriers: Barriers | None = None,
) -> EngineT:
    """Let the writes of *engine* enter the current lineage, and its reads wait for floors.

    The position of a transaction comes with its COMMIT, in the same packet; with the isolation
    level ``AUTOCOMMIT`` a statement that may have written costs one round trip more. Connections
    that are idle in the pool already are opened again. Sessions, the ORM and Core behave as before.
    A transaction of two phases marks the lineage (``in_doubt``) once it is prepared after a write;
    its commit has a position, whoever sends it.

    Args:
        engine: a SQLAlchemy 2 ``Engine`` or ``AsyncEngine`` of ``postgresql+psycopg``,
            ``postgresql+psycopg2`` or ``postgresql+asyncpg``.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        one_server: as :func:`instrument_connection`; ``at="now"`` polls by default only where the
            URL or ``connect_args`` name one host.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it, and reads of these find it; ``postgresql+psycopg`` alone.
        tables: with ``beside``: their names, ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: another database or driver, one that cannot keep lineages, or another
            datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    plain = instrumented.plain(engine)
    if names and is_supported(plain) and plain.dialect.driver not in _STORING:
        raise ConfigurationError(NO_ROWS)
    options: dict[str, Any] = {"promise_table": promise_table, "reads_from": reads_from}
    options |= {"readonly_functions": readonly_functions, "one_server": one_server}
    options["on_read"] = on_read
    instrumented.instrument(
        plain, datastore, lambda: made(datastore, settings_of(plain), barriers, names, options)
    )
    return engine


def uninstrument_engine(engine: Any) -> None:
    """Undo :func:`instrument_engine`. One that is not instrumented stays as it is."""
    instrumented.uninstrument(instrumented.plain(engine))


def settings_of(engine: Any) -> ServerSettings:
    """How to reach the server of *engine*, as its URL says."""
    synchronous = instrumented.plain(engine)
    arguments, options = synchronous.dialect.create_connect_args(synchronous.url)
    return _with(arguments, options, one_server=bool(options.get("host")))


def _with(arguments: Any, options: Any, *, one_server: bool) -> ServerSettings:
    """From what SQLAlchemy connects with: perhaps a text of libpq's, and named arguments."""
    conninfo: Any = importlib.import_module("psycopg.conninfo")
    text = arguments[0] if arguments else ""
    if (secure := options.get("ssl")) is not None:  # Of asyncpg: a mode, or a context.
        options = {**options, "sslmode": secure if isinstance(secure, str) else "require"}
    return ServerSettings.of({**conninfo.conninfo_to_dict(text), **options}, one_server=one_server)


def engine_of(engine: Any, *, asyncio: bool) -> tuple[Any, bool]:
    """The engine that is meant, and whether it was made here: see `engines.engine_of`."""
    return engines.engine_of(
        engine,
        asyncio=asyncio,
        store="PostgreSQL",
        drivers='"psycopg[binary]"',
        sync_engine=instrumented.plain,
    )
