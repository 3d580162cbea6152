"""Shims and instrumented clients of real stores, opened as a request describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ._values import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import Lineage, Promise


class OpenShim(Protocol):
    """A shim by which the agent writes and reads texts."""

    shim: Any

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> Any:
        """Write; the lineage with the new write, None for a plain command."""
        ...

    def delete(self, key: str, lineage: Lineage | None) -> Any:
        """Delete; as `write`."""
        ...

    def read(self, key: str) -> tuple[str | None, Any]:
        """The value and its lineage, None for a plain command."""
        ...

    async def read_async(self, key: str) -> tuple[str | None, Any]:
        """As `read`, by the store's asynchronous client."""
        ...

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        """Write and fulfil in a transaction that is rolled back."""
        ...

    def close(self) -> None:
        """Unregister, and close what was opened."""
        ...


def open_shim(store: str, given: Mapping[str, Any]) -> OpenShim:
    """Open what *given* describes.

    Raises:
        Unsupported: there is no such store here.
    """
    makes: dict[str, Callable[[Mapping[str, Any]], OpenShim]] = {
        "embedded": _embedded,
        "mariadb": _mysql,
        "mongodb": _mongodb,
        "mysql": _mysql,
        "redis": _redis_client if given.get("client") else _redis,
    }
    if store not in makes or (given.get("client") and store != "redis"):
        msg = f"no {'client' if given.get('client') else 'shim'} of {store!r}"
        raise Unsupported(msg)
    return makes[store](given)


def stores() -> list[str]:
    """The stores of which there are shims."""
    return ["embedded", "mariadb", "mongodb", "mysql", "redis"]


class _Table2:
    """A shim with the calls of Table 2."""

    def __init__(
        self,
        shim: Any,
        open_async: Callable[[], Any] | None = None,
        roll_back: Callable[[str, bytes, Promise], None] | None = None,
        also: Callable[[], object] = lambda: None,
    ) -> None:
        self.shim = shim
        self._open_async = open_async
        self._roll_back = roll_back
        self._also = also

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> Any:
        return self.shim.write(key, value.encode(), lineage, fulfils=fulfils)

    def delete(self, key: str, lineage: Lineage | None) -> Any:
        return self.shim.delete(key, lineage)

    def read(self, key: str) -> tuple[str | None, Any]:
        return _text(self.shim.read(key))

    async def read_async(self, key: str) -> tuple[str | None, Any]:
        if self._open_async is None:
            return _text(await self.shim.read_async(key))
        shim = self._open_async()
        try:
            return _text(await shim.read(key))
        finally:
            await shim.aclose()

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        if self._roll_back is None:
            msg = "no transaction that is rolled back"
            raise Unsupported(msg)
        self._roll_back(key, value.encode(), fulfils)

    def close(self) -> None:
        self.shim.close()
        self._also()


def _text(found: tuple[Any, Any]) -> tuple[str | None, Any]:
    value, lineage = found
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode()
    return value, lineage


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("reads_from", "on_read") if name in given}


def _embedded(given: Mapping[str, Any]) -> OpenShim:
    from antipode_shims import embedded

    return _Table2(embedded.shim(given["datastore"], given["server"]["url"], **_options(given)))


def _redis(given: Mapping[str, Any]) -> OpenShim:
    from antipode_shims import redis as shims

    client = _redis_of(given)
    options = _options(given)

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with client.pipeline() as pipeline:
            shims.fulfil(pipeline, promise)
            pipeline.set(key, value)
            pipeline.execute_command("NOSUCH")  # So that the server refuses it as a whole.
            pipeline.execute()

    return _Table2(
        shims.shim(given["datastore"], client, **options),
        lambda: shims.shim_async(given["datastore"], _url(given, "redis"), **options),
        roll_back,
        client.close,
    )


def _redis_of(given: Mapping[str, Any]) -> Any:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    server = given["server"]
    return redis.Redis(
        host=server["host"],
        port=server["port"],
        socket_timeout=given.get("timeout_s"),
        retry=Retry(NoBackoff(), 0),
    )


class _Client:
    """Plain SET and GET of an instrumented client."""

    def __init__(self, client: Any) -> None:
        self.shim = None
        self._client = client

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> None:
        if lineage is not None or fulfils is not None:
            msg = "a client stores no lineage and fulfils no promise"
            raise Unsupported(msg)
        self._client.set(key, value)

    def delete(self, key: str, lineage: Lineage | None) -> None:
        del lineage
        self._client.delete(key)

    def read(self, key: str) -> tuple[str | None, None]:
        value = self._client.get(key)
        return None if value is None else value.decode(), None

    async def read_async(self, key: str) -> tuple[str | None, None]:
        msg = f"no asynchronous client for {key}"
        raise Unsupported(msg)

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        del key, value, fulfils
        raise Unsupported("a client fulfils no promise")

    def close(self) -> None:
        from antipode_shims import redis as shims

        shims.uninstrument_client(self._client)
        self._client.close()


def _redis_client(given: Mapping[str, Any]) -> OpenShim:
    from antipode_shims import redis as shims

    client = _redis_of(given)
    shims.instrument_client(client, datastore=given["datastore"], **_options(given))
    return _Client(client)


def _url(given: Mapping[str, Any], scheme: str) -> str:
    server = given["server"]
    return f"{scheme}://{server['host']}:{server['port']}"


def _mysql(given: Mapping[str, Any]) -> OpenShim:
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    from antipode_shims import mysql

    server, options = given["server"], _options(given)
    timeout = {"read_timeout": given["timeout_s"]} if "timeout_s" in given else {}
    place = f"{server['user']}:{server['password']}@{server['host']}:{server['port']}"
    engine = sqlalchemy.create_engine(
        f"mysql+pymysql://{place}/{server['database']}", poolclass=NullPool, connect_args=timeout
    )
    made = mysql.shim(given["datastore"], engine, **options)
    if given.get("reads_from", "primary") == "primary":
        with engine.begin() as connection:
            for statement in (*made.ddl(), *mysql.promises_ddl()):
                connection.exec_driver_sql(statement)

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with engine.connect() as connection, connection.begin() as transaction:
            mysql.fulfil(connection, promise)
            connection.exec_driver_sql(
                "REPLACE INTO antipode_kv (k, v) VALUES (%s, %s)", (key, value)
            )
            transaction.rollback()

    url = f"mysql+aiomysql://{place}/{server['database']}"
    return _Table2(
        made,
        lambda: mysql.shim_async(given["datastore"], url, **options),
        roll_back,
        engine.dispose,
    )


def _mongodb(given: Mapping[str, Any]) -> OpenShim:
    import pymongo

    from antipode_shims import mongodb

    server, options = given["server"], _options(given)
    timeouts = {"socketTimeoutMS": 1000 * given["timeout_s"]} if "timeout_s" in given else {}
    where: dict[str, Any] = {"database": "app", "collection": "agent"}
    client: Any = pymongo.MongoClient(
        server["host"], server["port"], directConnection=True, **timeouts
    )
    made = mongodb.shim(given["datastore"], client, **where, **options)

    def roll_back(key: str, value: bytes, promise: Promise) -> None:
        with client.start_session() as session, session.start_transaction():
            mongodb.fulfil(client["app"], promise, session=session)
            client["app"]["agent"].update_one(
                {"_id": key}, {"$set": {"value": value}}, upsert=True, session=session
            )
            session.abort_transaction()

    url = f"{_url(given, 'mongodb')}/?directConnection=true"
    return _Table2(
        made,
        lambda: mongodb.shim_async(given["datastore"], url, **where, **options),
        roll_back,
        client.close,
    )
