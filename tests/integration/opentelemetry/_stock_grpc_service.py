"""A plain gRPC service that hands a request on to the address in it; run as a process.

It knows nothing of lineages. OpenTelemetry's instrumentation is put in by
``opentelemetry-instrument``, or here where ``INSTRUMENT`` is set. It prints its port.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

METHOD = "/chain.Next/Pass"


def handed_on(request: bytes, _: Any) -> bytes:
    """What the next service answered; nothing where lineages are known here."""
    if "antipode" in sys.modules:
        return b""
    with grpc.insecure_channel(request.decode()) as channel:
        answer: bytes = channel.unary_unary(METHOD)(b"", timeout=20)
        return answer


def serve(method: Any) -> tuple[Any, int]:
    """A server of the one *method*, and its port."""
    server = grpc.server(ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(method)
    service = grpc.method_handlers_generic_handler("chain.Next", {"Pass": handler})
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


if __name__ == "__main__":
    if os.environ.get("INSTRUMENT"):
        from opentelemetry.instrumentation.grpc import (
            GrpcInstrumentorClient,
            GrpcInstrumentorServer,
        )

        GrpcInstrumentorServer().instrument()
        GrpcInstrumentorClient().instrument()
    running, number = serve(handed_on)
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()
    running.wait_for_termination()
