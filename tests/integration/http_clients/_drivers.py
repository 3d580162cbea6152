"""The HTTP clients that lineages travel with, under one face."""

from __future__ import annotations

import asyncio
import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Connection and response, in seconds; nothing here takes so long.
PATIENT = (5.0, 10.0)


class Driver(ABC):
    """One client library, and both instrumentations of it."""

    #: Of ours and of the client.
    module: str
    #: Of OpenTelemetry's, and the variable part of its setting.
    otel: tuple[str, str, str]
    #: What a connection that nobody accepts, and one that is lost, raise.
    failures: tuple[type[BaseException], ...]

    @property
    def ours(self) -> Any:
        """Our instrumentation."""
        return importlib.import_module(f"antipode.integrations.{self.module}")

    def instrumentor(self) -> Any:
        """OpenTelemetry's instrumentation."""
        package, name, _ = self.otel
        module = importlib.import_module(f"opentelemetry.instrumentation.{package}")
        return getattr(module, name)()

    @abstractmethod
    def get(
        self,
        *urls: str,
        headers: Mapping[str, str] | None = None,
        timeouts: tuple[float, float] = PATIENT,
        service: str | None = None,
        chosen: bool | None = None,
        method: str = "GET",
    ) -> list[int]:
        """Ask each URL in turn by one session; the statuses.

        Args:
            urls: absolute.
            headers: of all requests.
            timeouts: of the connection and of the response, in seconds.
            service: for :func:`instrument_client`.
            chosen: whether the session is instrumented by itself (or not at all); None: neither.
            method: of all requests.
        """

    def _choose(self, session: object, *, chosen: bool | None, service: str | None) -> None:
        if chosen:
            self.ours.instrument_client(session, service=service)
        elif chosen is not None:
            self.ours.uninstrument_client(session)


class Requests(Driver):
    module = "requests"
    otel = ("requests", "RequestsInstrumentor", "REQUESTS")

    def get(
        self,
        *urls: str,
        headers: Mapping[str, str] | None = None,
        timeouts: tuple[float, float] = PATIENT,
        service: str | None = None,
        chosen: bool | None = None,
        method: str = "GET",
    ) -> list[int]:
        import requests

        with requests.Session() as session:
            session.trust_env = False
            self._choose(session, chosen=chosen, service=service)
            return [
                session.request(method, url, headers=headers, timeout=timeouts).status_code
                for url in urls
            ]


class Httpx(Driver):
    module = "httpx"
    otel = ("httpx", "HTTPXClientInstrumentor", "HTTPX")

    def get(
        self,
        *urls: str,
        headers: Mapping[str, str] | None = None,
        timeouts: tuple[float, float] = PATIENT,
        service: str | None = None,
        chosen: bool | None = None,
        method: str = "GET",
    ) -> list[int]:
        import httpx

        with httpx.Client(**_httpx_options(timeouts)) as client:
            self._choose(client, chosen=chosen, service=service)
            return [client.request(method, url, headers=headers).status_code for url in urls]


class HttpxAsync(Httpx):
    def get(
        self,
        *urls: str,
        headers: Mapping[str, str] | None = None,
        timeouts: tuple[float, float] = PATIENT,
        service: str | None = None,
        chosen: bool | None = None,
        method: str = "GET",
    ) -> list[int]:
        import httpx

        async def run() -> list[int]:
            async with httpx.AsyncClient(**_httpx_options(timeouts)) as client:
                self._choose(client, chosen=chosen, service=service)
                answers = [await client.request(method, url, headers=headers) for url in urls]
                return [answer.status_code for answer in answers]

        return asyncio.run(run())


class Aiohttp(Driver):
    module = "aiohttp"
    otel = ("aiohttp_client", "AioHttpClientInstrumentor", "AIOHTTP_CLIENT")

    def get(
        self,
        *urls: str,
        headers: Mapping[str, str] | None = None,
        timeouts: tuple[float, float] = PATIENT,
        service: str | None = None,
        chosen: bool | None = None,
        method: str = "GET",
    ) -> list[int]:
        import aiohttp

        async def run() -> list[int]:
            connect, read = timeouts
            waits = aiohttp.ClientTimeout(sock_connect=connect, sock_read=read)
            async with aiohttp.ClientSession(timeout=waits) as session:
                self._choose(session, chosen=chosen, service=service)
                statuses: list[int] = []
                for url in urls:
                    async with session.request(method, url, headers=headers) as response:
                        await response.read()
                        statuses.append(response.status)
                return statuses

        return asyncio.run(run())


def _httpx_options(timeouts: tuple[float, float]) -> dict[str, Any]:
    import httpx

    connect, read = timeouts
    waits = httpx.Timeout(read, connect=connect)
    return {"timeout": waits, "follow_redirects": True, "trust_env": False}


DRIVERS = {
    "requests": Requests(),
    "httpx": Httpx(),
    "httpx-async": HttpxAsync(),
    "aiohttp": Aiohttp(),
}
