"""Python and C++ call each other: what was written before goes along, what was added comes back."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

import antipode
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from tests.conformance._agents import command

from ._service import CAUSE, START, Seen, handler, write

pytestmark = pytest.mark.slow

SERVICE = "antipode.test.Calls"


def text(value: str) -> bytes:
    """The message of cpp/tests/grpc/calls.proto."""
    return b"\n" + bytes([len(value)]) + value.encode()


def served(stack: ExitStack, unary: Any) -> int:
    """A Python server with one method."""
    pool = stack.enter_context(ThreadPoolExecutor(2))
    server = grpc.server(
        pool, (handler({"Unary": unary}, SERVICE),), interceptors=[ours.server_interceptor()]
    )
    port: int = server.add_insecure_port("localhost:0")
    server.start()
    stack.callback(lambda: server.stop(None).wait())
    return port


def cpp_server(stack: ExitStack) -> int:
    """The C++ server, which calls whom its request names."""
    program = Path(command("cpp")[0]).with_name("antipode_grpc_peer")
    process = stack.enter_context(
        subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    assert process.stdin
    assert process.stdout
    stack.callback(process.stdin.close)
    return int(process.stdout.readline())


def keys(lineage: antipode.Lineage) -> set[str]:
    return {each.key for each in lineage}


@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
def test_a_call_through_both_languages(fails: bool) -> None:  # noqa: FBT001
    """Python calls C++, which calls Python: each has what came before, the first one has it all."""
    seen = Seen()

    def unary(request: bytes, context: Any) -> bytes:
        seen.call(context)
        antipode.append(write("nested"))
        if fails:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        return request

    forget_services()
    with ExitStack() as stack:
        port = served(stack, unary)
        cpp_port = cpp_server(stack)
        channel = stack.enter_context(grpc.insecure_channel(f"localhost:{cpp_port}"))
        channel = ours.instrument_channel(channel)
        stack.enter_context(antipode.scope(START))
        call = channel.unary_unary(f"/{SERVICE}/Unary")
        if fails:
            with pytest.raises(grpc.RpcError, match="no such post"):
                call(text(f"localhost:{port}"))
        else:
            call(text(f"localhost:{port}"))
        found = antipode.current()
    assert keys(seen.lineages[0]) == {CAUSE.key, "post"}
    assert keys(found) == {CAUSE.key, "post", "nested"}
    assert not found.incomplete
