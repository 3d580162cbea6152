"""Every client of one of AWS's services in a process, by its endpoint or region."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from antipode.shim import ProcessWide, place_of

from .botocore import Settings
from .instrument import implied

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from antipode.shim import Rule

_PORTS = {"http": 80, "https": 443}


def process_wide(
    store: str, services: Collection[str], take: Callable[[Any, Rule], None]
) -> ProcessWide:
    """What instruments the clients of a store as they are made.

    Args:
        store: as the scheme of a rule names it.
        services: as botocore names those of its clients.
        take: instruments one client.
    """

    def made(client: Any) -> None:
        if service_of(client) in services and client not in implied:
            wide.cover(client, places_of(client), None, partial(_taken, client))

    def _taken(client: Any, rule: Rule) -> None:
        take(client, rule)
        implied.add(client)

    def patch(module: Any) -> None:
        wide.after(module.BaseClient, "__init__", made)

    wide = ProcessWide(store, {"botocore.client": patch})
    return wide


def implied_of(services: Collection[str]) -> list[Any]:
    """The clients of *services* that rules instrumented."""
    return [client for client in list(implied) if service_of(client) in services]


def service_of(client: Any) -> str:
    """What botocore calls the service of *client*."""
    return str(client.meta.service_model.service_name)


def places_of(client: Any) -> Iterator[tuple[str, int]]:
    """The endpoint of *client* and, of AWS's own, its region."""
    settings = Settings.of(client)
    parts = urlsplit(settings.endpoint_url)
    yield place_of(parts.hostname, parts.port or _PORTS.get(parts.scheme, 443))
    if settings.is_aws:
        yield place_of(settings.region, 443)
