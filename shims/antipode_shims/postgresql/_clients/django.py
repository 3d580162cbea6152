"""``instrument_django``: Django's databases of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from antipode import ConfigurationError
from antipode.shim import stored_names, switchable
from antipode_shims._sql.django import Aliases
from antipode_shims._sql.promises import TABLE
from antipode_shims.postgresql import _instrument
from antipode_shims.postgresql._endpoint import ServerSettings
from antipode_shims.postgresql._instrument import made

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom
    from antipode_shims.postgresql._shim.base import BasePostgreSQLShim


_aliases: Aliases[BasePostgreSQLShim] = Aliases("PostgreSQL", "postgresql", _instrument)


@switchable
def instrument_django(
    alias: str = "default",
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
) -> None:
    """Let the writes of a Django database enter the lineage, and its reads wait for floors.

    Call it once, in ``AppConfig.ready``. Within ``atomic()`` the position of a commit comes with
    it, in the same packet; a statement that commits on its own and may have written costs one round
    trip more.

    Args:
        alias: of ``settings.DATABASES``; its engine is ``django.db.backends.postgresql``, over
            psycopg 3, which Django takes where it is installed.
        datastore: the name that every service spells alike; aliases of standbys share it.
        reads_from: where its reads go.
        one_server: as :func:`instrument_connection`.
        promise_table: the table of promises (:func:`promises_ddl`), perhaps ``schema.table``.
        readonly_functions: functions that write nothing, as statements name them.
        lineage: ``beside`` stores its lineage with each row, in *tables* that were migrated for
            it, and reads of these find it; psycopg 3 alone.
        tables: with ``beside``: their names, ``table`` or ``schema.table``.
        on_read: whether reads of *tables* add what they find to the current lineage.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Raises:
        ConfigurationError: Django is missing, the alias is not PostgreSQL's, its client is not
            psycopg 3, or another datastore than before.
    """
    names = stored_names(lineage, tables, datastore=datastore, option="tables")
    wrapper = _aliases.wrapper(alias)
    if not hasattr(wrapper.Database, "AsyncConnection"):
        msg = f"Django's {alias!r} is over psycopg2, which is not supported yet: install psycopg"
        raise ConfigurationError(msg)
    options: dict[str, Any] = {"promise_table": promise_table, "reads_from": reads_from}
    options |= {"readonly_functions": readonly_functions, "one_server": one_server}
    options["on_read"] = on_read

    def make() -> BasePostgreSQLShim:
        settings = ServerSettings.of(wrapper.get_connection_params())
        return made(datastore, settings, barriers, names, options)

    _aliases.instrument(alias, datastore, make)


def uninstrument_django(alias: str = "default") -> None:
    """Undo :func:`instrument_django`. An alias that is not instrumented stays as it is."""
    _aliases.uninstrument(alias)
