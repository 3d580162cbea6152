"""``instrument_django``: Django's databases of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import switchable
from antipode_shims._sql.django import Aliases
from antipode_shims._sql.promises import TABLE
from antipode_shims.postgresql import _instrument
from antipode_shims.postgresql._endpoint import ServerSettings
from antipode_shims.postgresql._instrument import made

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, ReadsFrom
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
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Raises:
        ConfigurationError: Django is missing, the alias is not PostgreSQL's, its client is not
            psycopg 3, or another datastore than before.
    """
    wrapper = _aliases.wrapper(alias)
    if not hasattr(wrapper.Database, "AsyncConnection"):
        msg = f"Django's {alias!r} is over psycopg2, which is not supported yet: install psycopg"
        raise ConfigurationError(msg)
    options: dict[str, Any] = {"promise_table": promise_table, "reads_from": reads_from}
    options |= {"readonly_functions": readonly_functions, "one_server": one_server}

    def make() -> BasePostgreSQLShim:
        settings = ServerSettings.of(wrapper.get_connection_params())
        return made(datastore, settings, barriers, options)

    _aliases.instrument(alias, datastore, make)


def uninstrument_django(alias: str = "default") -> None:
    """Undo :func:`instrument_django`. An alias that is not instrumented stays as it is."""
    _aliases.uninstrument(alias)
