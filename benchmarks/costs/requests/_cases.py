"""What is compared: an empty call of one framework, instrumented by OpenTelemetry on both sides."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

#: Has no bound: it tells what is possible.
LEAST = "grpc, least"


class Case(Protocol):
    """A module that serves and calls. Each side has a process for either, so globals are free."""

    def serve(self, *, antipode: bool) -> AbstractContextManager[int]:
        """A block in which something is served on loopback, at the port that it yields."""
        ...

    def calling(self, port: int, *, antipode: bool) -> AbstractContextManager[Callable[[], None]]:
        """A block with a call over one connection, which raises where it went wrong."""
        ...


#: By name: where it is.
CASES = {
    "fastapi": "benchmarks.costs.requests._fastapi",
    "fastapi, with a lineage": "benchmarks.costs.requests._fastapi_lineage",
    "fastapi, setup()": "benchmarks.costs.requests._fastapi_setup",
    "fastapi, switched off": "benchmarks.costs.requests._fastapi_off",
    "grpc": "benchmarks.costs.requests._grpc",
    "grpc, with a lineage": "benchmarks.costs.requests._grpc_lineage",
    LEAST: "benchmarks.costs.requests._grpc_least",
}
#: What is installed of what they call, and what that is instrumented with.
PACKAGES = (
    "opentelemetry-api",
    "opentelemetry-instrumentation-fastapi",
    "opentelemetry-instrumentation-grpc",
    "fastapi",
    "uvicorn",
    "grpcio",
)


def case(name: str) -> Case:
    """The case *name*."""
    return cast("Case", import_module(CASES[name]))
