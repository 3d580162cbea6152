"""``instrument_django``: the connections of one of Django's database aliases.

Django opens a connection for each thread and announces each by a signal; its ORM, transactions and
tests stay as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from antipode import ConfigurationError
from antipode.shim import register, shims_of, stored_names, switchable
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._instrument import InstrumentedShim, attach, detach, is_instrumented, made
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK
from antipode_shims.mysql._promises.records import TABLE

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom


class AliasHooks:
    """What listens to the connections of one alias."""

    def __init__(self, alias: str, shim: InstrumentedShim, wrapper: Any) -> None:
        """Listen to nothing yet; let connections of PyMySQL ask for positions from now on."""
        self.shim = shim
        self._settings: Any = wrapper.settings_dict
        self._options: Any = self._settings.get("OPTIONS")
        if wrapper.Database.__name__ == "pymysql":
            flags = wrapper.get_connection_params()["client_flag"] | SESSION_TRACK
            self._settings["OPTIONS"] = {**(self._options or {}), "client_flag": flags}
        self._alias = alias
        self._connections: list[Any] = []

    def created(self, sender: Any, connection: Any, **more: Any) -> None:
        """Django has opened a connection."""
        del sender, more
        if connection.alias == self._alias:
            self.take(connection.connection)

    def take(self, connection: Any) -> None:
        """Instrument a connection, and forget those that are closed."""
        if not is_instrumented(connection, self.shim.datastore):
            attach(connection, self.shim)
        still = [one for one in self._connections if is_open(one) and one is not connection]
        self._connections = [*still, connection]

    def release(self) -> None:
        """Leave all of them as they were."""
        for connection in self._connections:
            detach(connection)
        self._connections = []
        self._settings["OPTIONS"] = self._options


_hooks: dict[str, AliasHooks] = {}


@switchable
def instrument_django(
    alias: str = "default",
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
) -> None:
    """Let the writes of a Django database enter the lineage, and its reads wait for floors.

    Call it once, in ``AppConfig.ready``. With mysqlclient, Django's default, a commit that wrote
    costs one round trip more; with PyMySQL in its place it costs none on connections that are
    opened from now on: the flag that this needs joins the alias' own.

    Args:
        alias: of ``settings.DATABASES``; its engine is ``django.db.backends.mysql``.
        datastore: the name that every service spells alike; aliases of replicas share it.
        reads_from: where its reads go.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it (:func:`migration`); needs PyMySQL in place of mysqlclient.
        tables: with whose rows, by ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        one_server: as :func:`instrument_connection`. None: it is not known, and checked.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Raises:
        ConfigurationError: Django is missing, the alias is not MySQL's, its client cannot keep
            lineages, or another datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    wrapper, created = _django(alias)
    held = _hooks.get(alias)
    if held is not None:
        if held.shim.datastore != datastore:
            msg = f"Django's {alias!r} is instrumented as {held.shim.datastore!r} already"
            raise ConfigurationError(msg)
        if held.shim in shims_of(datastore):
            return
        uninstrument_django(alias)
    options: dict[str, Any] = {"promise_table": promise_table}
    options |= {"readonly_functions": readonly_functions, "reads_from": reads_from}
    options |= {"on_read": on_read, "one_server": one_server}
    shim = made(
        datastore, ServerSettings.of(wrapper.get_connection_params()), barriers, names, options
    )
    register(shim)
    hooks = _hooks[alias] = AliasHooks(alias, shim, wrapper)
    created.connect(hooks.created, weak=False, dispatch_uid=("antipode", alias))
    if wrapper.connection is not None:
        hooks.take(wrapper.connection)


def uninstrument_django(alias: str = "default") -> None:
    """Undo :func:`instrument_django`. An alias that is not instrumented stays as it is."""
    hooks = _hooks.pop(alias, None)
    if hooks is not None:
        _django(alias)[1].disconnect(dispatch_uid=("antipode", alias))
        hooks.release()
        hooks.shim.close()


def _django(alias: str) -> tuple[Any, Any]:
    """The alias' connection of this thread, and the signal of new ones.

    Raises:
        ConfigurationError: Django is missing, or the alias is not MySQL's.
    """
    try:
        connections: Any = import_module("django.db").connections
        created: Any = import_module("django.db.backends.signals").connection_created
    except ImportError as error:
        msg = "instrument_django needs Django: pip install Django"
        raise ConfigurationError(msg) from error
    wrapper: Any = connections[alias]
    if wrapper.vendor != "mysql":
        msg = f"Django's {alias!r} is a database of {wrapper.vendor}, not of MySQL or MariaDB"
        raise ConfigurationError(msg)
    return wrapper, created


def is_open(connection: Any) -> bool:
    """Whether a connection of either client is open still."""
    return bool(getattr(connection, "open", True))
