"""``instrument_connection``: existing code keeps its connection and its calls."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import (
    adopt,
    disown,
    named_client,
    register,
    shims_of,
    stored_names,
    switchable,
)
from antipode_shims._sql.promises import TABLE

from ._clients.detect import client_of, unwrapped
from ._clients.tap import Tap
from ._functions import names_of
from ._shim.base import BaseMySQLShim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom

    from ._endpoint.settings import ServerSettings
    from ._stored.lineages import StoredLineages

ConnectionT = TypeVar("ConnectionT")


class InstrumentedShim(BaseMySQLShim):
    """What instrumented connections register: one for all that reach one server alike.

    Attributes:
        stored: the lineages that they store with rows; None for none.
    """

    stored: StoredLineages | None = None

    def store_lineages(self, tables: tuple[str, ...]) -> None:
        """Store lineages with the rows of *tables*."""
        from ._stored.lineages import StoredLineages

        self.stored = StoredLineages(self, tables)


def made(
    datastore: str,
    settings: ServerSettings,
    barriers: Barriers | None,
    tables: tuple[str, ...],
    options: dict[str, Any],
) -> InstrumentedShim:
    """A shim of instrumented connections, whose reads wait as *barriers* says."""
    shim = InstrumentedShim(datastore, settings, **options)
    if tables:
        shim.store_lineages(tables)
    shim.wait_by(barriers)
    return shim


#: PyMySQL calls these for every statement and packet.
_DIRECT = (("_antipode_send", "_execute_command"), ("_antipode_read", "_read_packet"))

#: Connections that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()
_shared: dict[tuple[object, ...], tuple[InstrumentedShim, int]] = {}
_lock = threading.Lock()


def _shared_shim(key: tuple[object, ...], make: Callable[[], InstrumentedShim]) -> InstrumentedShim:
    """The shim of *key*, for one connection more; a new one where that was unregistered."""
    with _lock:
        shim, users = _shared.get(key, (None, 0))
        if shim is None or shim not in shims_of(shim.datastore):
            shim, users = make(), 0
            register(shim)
        _shared[key] = shim, users + 1
    return shim


@switchable
def instrument_connection(
    connection: ConnectionT,
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
) -> ConnectionT:
    """Let the writes of *connection* enter the current lineage, and its reads wait for floors.

    A committed write's position comes with the server's reply where the connection was opened
    with ``CLIENT_SESSION_TRACK`` (``1 << 23`` among the flags of ``client_flag``, which
    :func:`instrument_engine` sees to); otherwise, and always with mysqlclient, a commit that wrote
    costs one round trip more. Results and exceptions stay the client's. What the server is, is
    asked before the first statement.

    Args:
        connection: of PyMySQL, aiomysql or mysqlclient, open or not, or a proxy round one.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it (:func:`migration`); needs PyMySQL or aiomysql.
        tables: with whose rows, by ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        one_server: True states that all statements of a connection reach one server. Otherwise
            that is checked, and reads that wait are refused where it is not known. With False, for
            a balancer, ``at="now"`` does not poll its address.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: a connection of another client, one that cannot keep lineages, or
            another datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    client = client_of(connection)
    release(connection)
    if is_instrumented(connection, datastore):
        if _shim_of(connection) in shims_of(datastore):
            return connection
        uninstrument_connection(connection)
    options: dict[str, Any] = {"promise_table": promise_table}
    options |= {"readonly_functions": readonly_functions}
    options |= {"reads_from": reads_from, "on_read": on_read, "one_server": one_server}
    share(connection, client.settings(connection), datastore, options, names, barriers=barriers)
    return connection


def share(
    connection: Any,
    settings: ServerSettings,
    datastore: str,
    options: dict[str, Any],
    names: tuple[str, ...] = (),
    *,
    barriers: Barriers | None = None,
) -> None:
    """Let *connection* record for the shim of all that reach one server alike.

    Args:
        connection: of a supported client, not instrumented.
        settings: how the library's own connections reach its server.
        datastore: its name.
        options: of the shim.
        names: the tables with whose rows lineages are stored.
        barriers: ``auto`` or ``explicit``; None: as configured.
    """
    functions = names_of(options.get("readonly_functions", ()))
    held = {**options, "readonly_functions": functions}
    where = settings.where, settings.database
    key = (datastore, names, where, barriers, *sorted(held.items()))
    attach(
        connection, _shared_shim(key, partial(made, datastore, settings, barriers, names, options))
    )


def uninstrument_connection(connection: Any) -> None:
    """Undo :func:`instrument_connection`. One that is not instrumented stays as it is.

    Tracking stays on in its session, which costs a few bytes in each reply to a commit.
    """
    tap = getattr(connection, "_antipode", None)
    if tap is None:
        return
    implied.discard(unwrapped(connection))
    detach(connection)
    _let_go(tap.shim)


def release(connection: Any) -> None:
    """Undo what the address of *connection* implied, before it is instrumented by a call.

    What its handshake asked for stays.
    """
    connection = unwrapped(connection)
    if connection in implied:
        shim = _shim_of(connection)
        implied.discard(connection)
        detach(connection, asking=True)
        _let_go(shim)


def _let_go(held: BaseMySQLShim) -> None:
    """One connection less records for *held*; the last one closes it."""
    with _lock:
        for key, (shim, users) in list(_shared.items()):
            if shim is held:
                if users > 1:
                    _shared[key] = shim, users - 1
                else:
                    del _shared[key]
                    shim.close()


def is_instrumented(connection: Any, datastore: str) -> bool:
    """Whether *connection* is instrumented for *datastore*.

    Raises:
        ConfigurationError: it is, for another one.
    """
    tap = getattr(connection, "_antipode", None)
    if tap is not None and tap.shim.datastore != datastore:
        msg = f"this connection is instrumented as {tap.shim.datastore!r} already"
        raise ConfigurationError(msg)
    return tap is not None


def is_open(connection: Any) -> bool:
    """Whether a connection of either client is open still."""
    return bool(getattr(connection, "open", True))


def _shim_of(connection: Any) -> BaseMySQLShim:
    """What an instrumented *connection* records for."""
    tap: Tap = connection._antipode  # noqa: SLF001
    return tap.shim


def stored_by(shim: BaseMySQLShim) -> StoredLineages | None:
    """The lineages that connections of *shim* store with rows; None for none."""
    return shim.stored if isinstance(shim, InstrumentedShim) else None


def attach(connection: Any, shim: BaseMySQLShim) -> None:
    """Let *connection* record for *shim*."""
    connection = unwrapped(connection)
    client = client_of(connection)
    status, tracked = client.begin(connection)
    tap = _tap_of(shim, status=status, tracked=tracked, told=client.told)
    adopt(connection, client.mixin(stored=stored_by(shim) is not None), tap, direct=_DIRECT)
    named_client(connection)


def _tap_of(shim: BaseMySQLShim, **options: Any) -> Tap:
    if (stored := stored_by(shim)) is None:
        return Tap(shim, **options)
    from ._stored.tap import StoredTap

    return StoredTap(stored.connection(), shim, **options)


def detach(connection: Any, *, asking: bool = False) -> None:
    """Undo :func:`attach`; *asking* leaves the flag by which its session shows its state."""
    connection = unwrapped(connection)
    client = client_of(connection)
    stored = stored_by(_shim_of(connection)) is not None
    if stored:
        connection._antipode_forget()  # noqa: SLF001
    if not asking:
        client.end(connection)
    disown(connection, client.mixin(stored=stored))
