"""What the services in Python share: how a process runs, and its messages."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry import propagate
from opentelemetry.context import attach, detach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_THREADS = 16
_RECONNECTS = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]


class Process:
    """One process. Its arguments are NAME=VALUE; it ends when its input does.

    `descriptors` names the file that protoc made, and `build` what is used: `antipode`,
    `opentelemetry` for its own propagation in place of that, or `baseline` for neither.
    """

    def __init__(self) -> None:
        """Read the arguments."""
        self._arguments = dict(argument.split("=", 1) for argument in sys.argv[1:])
        self._propagates = self._arguments["build"] == "opentelemetry"
        if self._arguments["build"] == "antipode":
            import antipode
            from antipode.integrations import grpc as antipode_grpc

            antipode.instrument()
            antipode_grpc.instrument()
        pool = descriptor_pool.DescriptorPool()
        content = Path(self._arguments["descriptors"]).read_bytes()
        for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
            pool.Add(file)
        self._pool = pool

    def message(self, name: str) -> Any:  # noqa: ANN401 - a class that is made of the .proto
        """The class of a message."""
        found = self._pool.FindMessageTypeByName(f"social_graph.{name}")
        return message_factory.GetMessageClass(found)

    def upload(self) -> Callable[[Any], object]:
        """What sends a part of a post to compose-post."""
        # A service that is started again is found again at once.
        channel = grpc.insecure_channel(self._arguments["compose-post"], _RECONNECTS)
        call = channel.unary_unary(
            "/social_graph.ComposePost/Upload",
            request_serializer=self.message("Part").SerializeToString,
            response_deserializer=self.message("Nothing").FromString,
        )
        deadline_s = float(self._arguments.get("deadline", 5))
        return lambda part: call(part, timeout=deadline_s, metadata=self._sent())

    def _sent(self) -> tuple[tuple[str, str], ...] | None:
        if not self._propagates:
            return None
        headers: dict[str, str] = {}
        propagate.inject(headers)
        return tuple(headers.items())

    @contextmanager
    def _received(self, call: grpc.ServicerContext) -> Iterator[None]:
        if not self._propagates:
            yield
            return
        token = attach(propagate.extract(dict(call.invocation_metadata())))
        try:
            yield
        finally:
            detach(token)

    def serve(self, service: str, request: str, compose: Callable[[Any], object]) -> None:
        """Serve the method `Compose` until the input ends."""
        nothing = self.message("Nothing")

        def handle(received: object, context: grpc.ServicerContext) -> object:
            try:
                with self._received(context):
                    compose(received)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")
            return nothing()

        method = grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=self.message(request).FromString,
            response_serializer=nothing.SerializeToString,
        )
        server = grpc.server(ThreadPoolExecutor(_THREADS))
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"social_graph.{service}", {"Compose": method}),)
        )
        host, port = (self._arguments.get(*it) for it in (("host", "127.0.0.1"), ("port", "0")))
        port = server.add_insecure_port(f"{host}:{port}")
        server.start()
        print(json.dumps({"port": port}), flush=True)
        sys.stdin.read()
        server.stop(None)
