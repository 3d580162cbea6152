"""gRPC: lineages in the metadata of calls, and in the trailing metadata of their answers.

Needs grpcio 1.60 or later (``pip install "antipode-xcy[grpc]"``). :func:`instrument` covers the
servers and channels of a process, as OpenTelemetry's instrumentation does, before or after it; the
interceptors are for servers and channels one by one. See docs/guides/integrations.md.
"""

from __future__ import annotations

from ._aio_server import AioServerInterceptor
from ._install import (
    aio_client_interceptors,
    aio_server_interceptor,
    instrument,
    instrument_channel,
    server_interceptor,
    uninstrument,
    uninstrument_channel,
)
from ._server import ServerInterceptor

__all__ = [
    "AioServerInterceptor",
    "ServerInterceptor",
    "aio_client_interceptors",
    "aio_server_interceptor",
    "instrument",
    "instrument_channel",
    "server_interceptor",
    "uninstrument",
    "uninstrument_channel",
]


def __dir__() -> list[str]:
    return __all__
