"""SQLAlchemy engines of MySQL and MariaDB, instrumented or of Table 2."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import stored_names, switchable
from antipode_shims._sql import engines
from antipode_shims._sql.promises import TABLE
from antipode_shims._sql.sqlalchemy import EngineHooks, Engines
from antipode_shims.mysql import _instrument
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._instrument import made, stored_by
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK
from antipode_shims.mysql._shim.base import BaseMySQLShim

from .detect import NO_PACKETS

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom
    from antipode_shims._sql.connections import Connections

EngineT = TypeVar("EngineT")

_DRIVERS = ("pymysql", "aiomysql", "mysqldb")


class MySQLEngineHooks(EngineHooks[BaseMySQLShim]):
    """What listens to an engine of MySQL or MariaDB."""

    connections: ClassVar[Connections] = _instrument

    def __init__(self, engine: Any, shim: BaseMySQLShim) -> None:
        """Listen to nothing yet."""
        super().__init__(engine, shim)
        self._flagged = not _is_native(engine.dialect)
        if stored_by(shim) is not None:
            self._listeners.append(("checkin", self._checked_in))

    def connects(self, dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        """Ask for positions in the handshake."""
        del dialect, record, arguments
        if self._flagged:
            options["client_flag"] = options.get("client_flag", 0) | SESSION_TRACK
        self.shim.settings = ServerSettings.of(options, one_server=self.shim.can_poll)

    def _checked_in(self, dbapi_connection: Any, record: Any) -> None:
        """Sample what reads put off before somebody else gets the connection."""
        del dbapi_connection
        tap = getattr(record.driver_connection, "_antipode", None)
        if tap is not None:
            tap.given_back()


def _is_native(dialect: Any) -> bool:
    """Whether it is mysqlclient, and not PyMySQL under its name."""
    return bool(dialect.driver == "mysqldb" and dialect.dbapi.__name__ != "pymysql")


def is_supported(engine: Any) -> bool:
    """Whether *engine*, a plain one, is of MySQL or MariaDB and a client that is supported."""
    dialect = engine.dialect
    return dialect.name in ("mysql", "mariadb") and dialect.driver in _DRIVERS


#: The engines that this process has instrumented.
instrumented = Engines(
    MySQLEngineHooks,
    is_supported=is_supported,
    advice=(
        "replies can be read with mysql+pymysql and mysql+aiomysql; mysql+mysqldb costs a round "
        "trip for each commit"
    ),
)


@switchable
def instrument_engine(
    engine: EngineT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    lineage: Literal["none", "beside"] = "none",
    tables: Collection[str] = (),
    on_read: OnRead = "merge",
    one_server: bool | None = None,
    promise_table: str = TABLE,
    readonly_functions: Collection[str] = (),
    barriers: Barriers | None = None,
) -> EngineT:
    """Let the writes of *engine* enter the current lineage, and its reads wait for floors.

    Its pool opens each connection with ``CLIENT_SESSION_TRACK``, by which a committed write's
    position comes with the server's reply; with mysqlclient, and where ``creator=`` opens
    connections without that flag, a commit that wrote costs one round trip more.
    Connections that are idle in the pool already are opened again. Sessions, the ORM and Core
    behave as before. A transaction of two phases marks the lineage (``in_doubt``) once it is
    prepared; its commit has a position, whoever sends it.

    Args:
        engine: a SQLAlchemy 2 ``Engine`` or ``AsyncEngine`` with PyMySQL, aiomysql or mysqlclient.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it (:func:`migration`); needs PyMySQL or aiomysql.
        tables: with whose rows, by ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        one_server: as :func:`instrument_connection`; ``at="now"`` polls by default only where the
            URL or ``connect_args`` name a host or socket.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: another database or driver, one that cannot keep lineages, or another
            datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    plain = instrumented.plain(engine)
    if names and _is_native(plain.dialect):
        raise ConfigurationError(NO_PACKETS)
    options: dict[str, Any] = {"promise_table": promise_table}
    options |= {"readonly_functions": readonly_functions, "reads_from": reads_from}
    options |= {"on_read": on_read, "one_server": one_server}
    instrumented.instrument(
        plain, datastore, lambda: made(datastore, _settings(plain), barriers, names, options)
    )
    return engine


def uninstrument_engine(engine: Any) -> None:
    """Undo :func:`instrument_engine`. One that is not instrumented stays as it is."""
    instrumented.uninstrument(instrumented.plain(engine))


def _settings(engine: Any) -> ServerSettings:
    settings = settings_of(engine)
    named = settings.arguments.get("host") or settings.arguments.get("unix_socket")
    return replace(settings, one_server=bool(named))


def engine_of(engine: Any, *, asyncio: bool) -> tuple[Any, bool]:
    """The engine that is meant, and whether it was made here: see `engines.engine_of`."""
    return engines.engine_of(
        engine, asyncio=asyncio, store="MySQL", drivers="aiomysql", sync_engine=instrumented.plain
    )


def settings_of(engine: Any) -> ServerSettings:
    """How to reach the server of *engine*, its ``connect_args`` included."""
    synchronous = instrumented.plain(engine)
    arguments = dict(synchronous.dialect.create_connect_args(synchronous.url)[1])
    creator = getattr(synchronous.pool, "_creator", None)
    if inspect.isfunction(creator):
        # The one place where SQLAlchemy keeps what create_engine(connect_args=...) was given.
        arguments.update(inspect.getclosurevars(creator).nonlocals.get("cparams", {}))
    named = bool(arguments.get("host") or arguments.get("unix_socket"))
    return ServerSettings.of(arguments, one_server=named)
