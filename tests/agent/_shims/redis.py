"""Redis: string values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from antipode_shims import redis as shims

from ._open import Client, OpenShim, Table2, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise


def open_shim(given: Mapping[str, Any]) -> OpenShim:
    """A shim of its string values."""
    client = _client(given)
    server = given["server"]
    url = f"redis://{server['host']}:{server['port']}"

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with client.pipeline() as pipeline:
            shims.fulfil(pipeline, promise)
            pipeline.set(key, value)
            pipeline.execute_command("NOSUCH")  # So that the server refuses it as a whole.
            pipeline.execute()

    return Table2(
        shims.shim(given["datastore"], client, **options(given)),
        lambda: shims.shim_async(given["datastore"], url, **options(given)),
        roll_back,
        client.close,
    )


def open_client(given: Mapping[str, Any]) -> OpenShim:
    """SET, DEL and GET."""
    client = shims.instrument_client(_client(given), datastore=given["datastore"], **options(given))

    def close() -> None:
        shims.uninstrument_client(client)
        client.close()

    return Client(write=client.set, delete=client.delete, read=client.get, close=close)


def _client(given: Mapping[str, Any]) -> Any:
    server = given["server"]
    return redis.Redis(
        host=server["host"],
        port=server["port"],
        socket_timeout=given.get("timeout_s"),
        retry=Retry(NoBackoff(), 0),
    )
