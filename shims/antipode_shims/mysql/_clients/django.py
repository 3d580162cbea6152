"""``instrument_django``: Django's databases of MySQL and MariaDB."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from antipode.shim import stored_names, switchable
from antipode_shims._sql.django import Aliases
from antipode_shims._sql.promises import TABLE
from antipode_shims.mysql import _instrument
from antipode_shims.mysql._endpoint.settings import ServerSettings
from antipode_shims.mysql._instrument import InstrumentedShim, made
from antipode_shims.mysql._position.ok_packet import SESSION_TRACK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom


_aliases: Aliases[InstrumentedShim] = Aliases("MySQL or MariaDB", "mysql", _instrument)


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
    wrapper = _aliases.wrapper(alias)
    options: dict[str, Any] = {"promise_table": promise_table}
    options |= {"readonly_functions": readonly_functions, "reads_from": reads_from}
    options |= {"on_read": on_read, "one_server": one_server}

    def make() -> InstrumentedShim:
        settings = ServerSettings.of(wrapper.get_connection_params())
        return made(datastore, settings, barriers, names, options)

    _aliases.instrument(alias, datastore, make, partial(_ask_for_positions, wrapper))


def uninstrument_django(alias: str = "default") -> None:
    """Undo :func:`instrument_django`. An alias that is not instrumented stays as it is."""
    _aliases.uninstrument(alias)


def _ask_for_positions(wrapper: Any) -> Callable[[], None]:
    """Let connections of PyMySQL ask for positions from now on; what it returns undoes that."""
    settings: Any = wrapper.settings_dict
    options: Any = settings.get("OPTIONS")
    if wrapper.Database.__name__ == "pymysql":
        flags = wrapper.get_connection_params()["client_flag"] | SESSION_TRACK
        settings["OPTIONS"] = {**(options or {}), "client_flag": flags}

    def undo() -> None:
        settings["OPTIONS"] = options

    return undo
