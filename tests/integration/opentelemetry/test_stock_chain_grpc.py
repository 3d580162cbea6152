"""A chain over gRPC whose middle service does not know of lineages."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import grpc
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import grpc as lineages
from antipode.integrations._outgoing import forget_services
from tests.integration._processes import ROOT, STOCK, environment, under_agent

from ._stock_grpc_service import METHOD, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

POST = WriteId("posts", "post:1", 1, written_hour=490_000)
ORDER = WriteId("orders", "order:1", 1, written_hour=490_000)


@contextlib.contextmanager
def middle(*, agent: bool, **settings: str) -> Iterator[str]:
    """The stock service in a process of its own; yields its address."""
    program = [sys.executable, "-m", "tests.integration.opentelemetry._stock_grpc_service"]
    running = subprocess.Popen(
        under_agent(program) if agent else program,
        env=environment(settings),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    try:
        yield f"127.0.0.1:{int(running.stdout.readline())}"
    finally:
        running.terminate()
        running.wait(20)
        running.stdout.close()


@pytest.fixture
def last() -> Iterator[str]:
    """The last service's address: it tells what came, and writes."""

    def write(_: bytes, __: Any) -> bytes:
        came = antipode.serialize()
        antipode.append(ORDER)
        return came.encode()

    antipode.instrument()
    lineages.instrument()
    server, port = serve(write)
    yield f"127.0.0.1:{port}"
    server.stop(0).wait()
    lineages.uninstrument()
    forget_services()


def ask(address: str, to: str) -> tuple[Lineage, Lineage]:
    """What came to the last service, and the caller's lineage afterwards."""
    with antipode.scope(Lineage([POST])), grpc.insecure_channel(address) as channel:
        answer = channel.unary_unary(METHOD)(to.encode(), timeout=30)
        return antipode.deserialize(answer.decode()), antipode.current()


def test_without_a_service_in_between(last: str) -> None:
    """There and back."""
    assert ask(last, "") == (Lineage([POST]), Lineage([POST, ORDER]))


@pytest.mark.parametrize(
    ("agent", "settings", "arrives"),
    [
        (False, {"INSTRUMENT": "1"}, True),
        (True, {}, True),
        (True, {"OTEL_TRACES_SAMPLER": "always_off"}, True),
        (True, {"OTEL_PROPAGATORS": "baggage,tracecontext"}, True),
        (True, {"OTEL_PROPAGATORS": "tracecontext"}, False),
        (True, {"OTEL_PYTHON_GRPC_EXCLUDED_SERVICES": "chain.Next"}, False),
    ],
)
def test_a_stock_service_passes_lineages_on(
    agent: bool,  # noqa: FBT001 - a case
    settings: dict[str, str],
    arrives: bool,  # noqa: FBT001 - a case
    last: str,
) -> None:
    """Under the same conditions as over HTTP; the answer of the last one ends there as well."""
    with middle(agent=agent, **{**STOCK, **settings}) as address:
        came, after = ask(address, last)
    assert came == (Lineage([POST]) if arrives else Lineage())
    assert after == Lineage([POST])
