"""What a gRPC call leaves in its scope where its answer was not learned, or came late."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest

import antipode
from antipode import Lineage
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from antipode.integrations.grpc import _channel
from antipode.shim import Incomplete
from antipode_testing import wait_until
from tests.integration._ports import refused_port

from ._service import SERVICE, Seen, aio_methods, called, handler, made, served, write

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_DOUBT = {Incomplete(SERVICE, "in_doubt")}
RETRIES = (
    (
        "grpc.service_config",
        json.dumps(
            {
                "methodConfig": [
                    {
                        "name": [{}],
                        "retryPolicy": {
                            "maxAttempts": 3,
                            "initialBackoff": "0.01s",
                            "maxBackoff": "0.02s",
                            "backoffMultiplier": 1,
                            "retryableStatusCodes": ["UNAVAILABLE"],
                        },
                    }
                ]
            }
        ),
    ),
)
clients = pytest.mark.parametrize("client", ["sync", "aio"])


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    forget_services()
    antipode.instrument()
    ours.instrument()
    yield
    ours.uninstrument()
    forget_services()


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What the service saw; whatever waits in it goes on at the end."""
    one = Seen()
    yield one
    one.leave.set()


def code_of(error: BaseException) -> Any:
    return error.code() if isinstance(error, grpc.RpcError) else type(error)


@contextlib.contextmanager
def resetting() -> Iterator[int]:
    """A port where HTTP/2 is spoken until a request is there; then connections are reset."""

    def reset(one: socket.socket) -> None:
        one.sendall(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")  # An empty SETTINGS frame.
        while not one.recv(4096).count(b"\x00\x01"):  # HEADERS frames have type 1.
            pass
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                reset(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@clients
async def test_a_deadline_leaves_the_service_in_doubt(client: str, seen: Seen) -> None:
    """The callee has written, and its answer is never read."""
    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, client) as to:
        with antipode.scope() as held:
            with pytest.raises(grpc.RpcError) as raised:
                await to.one("wait", b"a", timeout=0.2)
            assert code_of(raised.value) is grpc.StatusCode.DEADLINE_EXCEEDED
            assert held.lineage == Lineage(incomplete=IN_DOUBT)
        seen.leave.set()


@clients
async def test_a_lost_connection_leaves_the_service_in_doubt(client: str) -> None:
    """A request that was sent may have been served, whatever becomes of its connection."""
    with resetting() as port:
        async with called(port, client) as to:
            with antipode.scope() as held:
                with pytest.raises(grpc.RpcError) as raised:
                    await to.one("unary_unary", b"a", timeout=10)
                assert code_of(raised.value) is grpc.StatusCode.UNAVAILABLE
                assert held.lineage.incomplete == IN_DOUBT


@clients
@pytest.mark.parametrize("retries", [False, True])
async def test_a_refused_connection_is_no_doubt_without_retries(
    client: str, *, retries: bool
) -> None:
    """What was certainly not sent marks nothing; under a retry policy it is not certain."""
    options = RETRIES if retries else ()
    with refused_port() as port:
        async with called(port, client, options=options) as to:
            with antipode.scope() as held:
                with pytest.raises(grpc.RpcError) as raised:
                    await to.one("unary_unary", b"a")
                assert code_of(raised.value) is grpc.StatusCode.UNAVAILABLE
                assert held.lineage.incomplete == (IN_DOUBT if retries else frozenset())


@clients
async def test_waiting_for_a_server_until_the_deadline_is_in_doubt(client: str) -> None:
    """``wait_for_ready`` ends as any deadline does: gRPC does not say what was sent."""
    with refused_port() as port:
        async with called(port, client) as to:
            with antipode.scope() as held:
                with pytest.raises(grpc.RpcError):
                    await to.one("unary_unary", b"a", wait_for_ready=True, timeout=0.2)
                assert held.lineage.incomplete == IN_DOUBT


@clients
@pytest.mark.parametrize("server", ["sync", "aio"])
async def test_a_retried_call_doubts_the_attempts_before(
    client: str, server: str, seen: Seen
) -> None:
    """A retry policy throws the first attempt's answer away, and with it what it wrote."""
    attempts: list[int] = []

    def flaky(request: bytes, context: Any) -> bytes:
        attempts.append(1)
        antipode.append(write(f"attempt{len(attempts)}"))
        if len(attempts) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "once more")
        return request

    async def aio_flaky(request: bytes, context: Any) -> bytes:
        attempts.append(1)
        antipode.append(write(f"attempt{len(attempts)}"))
        if len(attempts) == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "once more")
        return request

    methods = handler({"flaky": flaky if server == "sync" else aio_flaky})
    async with served(methods, kind=server) as port, called(port, client, options=RETRIES) as to:
        with antipode.scope() as held:
            await to.one("flaky", b"a")
            expected = Lineage([write("attempt2")], incomplete=IN_DOUBT)
            assert held.lineage == expected


async def test_hedged_calls_are_judged_one_by_one(seen: Seen) -> None:
    """The one that was cancelled is in doubt, the one that won brings its writes."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "aio") as to,
    ):
        with antipode.scope() as held:
            slow = made(to.channel, "wait")(b"slow")
            await asyncio.to_thread(seen.entered.wait, 10)
            await to.one("unary_unary", b"fast")
            assert not held.lineage.incomplete
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            assert held.lineage == Lineage([write("fast")], incomplete=IN_DOUBT)
        seen.leave.set()


async def test_a_cancelled_task_leaves_the_service_in_doubt(seen: Seen) -> None:
    """Asyncio cancels the call with the task that awaits it."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "aio") as to,
    ):
        with antipode.scope() as held:
            task = asyncio.create_task(to.one("wait", b"a"))
            await asyncio.to_thread(seen.entered.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert held.lineage.incomplete == IN_DOUBT
        seen.leave.set()


@clients
async def test_a_late_answer_enters_nothing(client: str, seen: Seen) -> None:
    """A response belongs to the request that asked for it, while that is open."""
    metric = antipode.telemetry.Metric("late_response", SERVICE)
    before = antipode.telemetry.metrics().get(metric, 0)
    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, client) as to:
        with antipode.scope() as held:
            task = asyncio.create_task(to.one("wait", b"a"))
            await asyncio.to_thread(seen.entered.wait, 10)
        with antipode.scope() as next_one:
            seen.leave.set()
            await task
            assert not next_one.lineage
            assert not held.lineage
    assert antipode.telemetry.metrics()[metric] == before + 1


async def test_a_future_brings_its_lineage_when_its_status_arrives(seen: Seen) -> None:
    """Nobody has to ask a future for its result: its answer is in the scope all the same."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "sync") as to,
    ):
        with antipode.scope() as held:
            future = made(to.channel, "unary_unary").future(b"a")
            told: list[Any] = []
            future.add_done_callback(told.append)
            assert isinstance(future, grpc.Future)
            await asyncio.to_thread(
                wait_until, lambda: bool(held.lineage), what="the answer", timeout_s=10
            )
            assert await asyncio.to_thread(future.result, 10) == b"a"
            await asyncio.to_thread(
                wait_until, lambda: told == [future], what="the callback", timeout_s=10
            )
            assert held.lineage == Lineage([write("a")])


async def test_a_result_is_never_seen_before_its_lineage(seen: Seen) -> None:
    """GRPC wakes who waits for a result while its callbacks still run."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "sync") as to,
    ):
        call = made(to.channel, "unary_unary")
        stream = made(to.channel, "unary_stream")

        def many() -> None:
            for number in range(100):
                with antipode.scope() as held:
                    call.future(b"%d" % number).result()
                    assert set(held.lineage) == {write(str(number))}
                with antipode.scope() as held:
                    assert len(list(stream(b"s"))) == 3
                    assert len(held.lineage) == 3

        await asyncio.to_thread(many)


async def test_who_waits_needs_no_callback(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, with gRPC's callback too late for everybody."""
    monkeypatch.setattr(_channel, "_came", lambda *_: None)
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "sync") as to,
    ):

        def wait() -> None:
            for look in ("result", "exception", "code", "trailing_metadata"):
                with antipode.scope() as held:
                    future = made(to.channel, "unary_unary").future(look.encode())
                    getattr(future, look)()
                    assert set(held.lineage) == {write(look)}
            with antipode.scope() as held:
                stream = made(to.channel, "unary_stream")(b"s")
                assert len(list(stream)) == 3
                assert len(held.lineage) == 3

        await asyncio.to_thread(wait)


async def test_a_dropped_or_cancelled_future_is_in_doubt(seen: Seen) -> None:
    """The mark is there as soon as nobody can learn the outcome any more."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "sync") as to,
    ):
        call = made(to.channel, "wait")
        with antipode.scope() as held:
            future = call.future(b"a")
            assert not held.lineage.incomplete
            future.cancel()
            assert held.lineage.incomplete == IN_DOUBT
        with antipode.scope() as held:
            future = call.future(b"a")
            del future
            assert held.lineage.incomplete == IN_DOUBT
        seen.leave.set()


@clients
async def test_a_stream_that_is_not_read_to_its_end_is_in_doubt(client: str, seen: Seen) -> None:
    """While it runs it is an open branch of its request; dropped or cancelled it is a doubt."""
    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, client) as to:
        with antipode.scope() as held:
            call = made(to.channel, "drip")(b"a")
            if client == "sync":
                assert await asyncio.to_thread(next, call) == b"a"
            else:
                assert await call.read() == b"a"
            assert antipode.deserialize(held.text()).open_branches == 1
            assert not held.lineage.incomplete
            call.cancel()
            assert held.lineage.incomplete == IN_DOUBT
            assert not antipode.deserialize(held.text()).open_branches
        seen.leave.set()


@clients
async def test_a_stream_that_nobody_holds_is_in_doubt_or_open(client: str, seen: Seen) -> None:
    """GRPC cancels a dropped stream at once, but for asyncio, where it runs on and says so."""
    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, client) as to:
        call = made(to.channel, "drip")
        with antipode.scope() as held:
            if client == "sync":
                await asyncio.to_thread(lambda: next(call(b"a")))
                assert held.lineage.incomplete == IN_DOUBT
            else:
                async for _ in call(b"a"):
                    break
                assert antipode.deserialize(held.text()).open_branches or held.lineage.incomplete
        seen.leave.set()


async def test_a_finaliser_waits_for_no_lock(seen: Seen) -> None:
    """Memory is collected anywhere, also where the thread holds the scope's lock."""
    async with (
        served(handler(aio_methods(seen)), kind="aio") as port,
        called(port, "sync") as to,
    ):
        with antipode.scope() as held:
            calls = [made(to.channel, "wait").future(b"a")]
            with held._lock:
                calls.clear()
            assert held.lineage.incomplete == IN_DOUBT
        seen.leave.set()


async def test_what_cannot_be_sent_is_no_doubt(seen: Seen) -> None:
    """GRPC refuses a request that it cannot serialise before anything leaves."""

    def serialise(_: Any) -> bytes:
        raise TypeError("no bytes")

    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, "sync") as to:
        call = to.channel.unary_unary(f"/{SERVICE}/unary_unary", serialise)
        with antipode.scope() as held:
            with pytest.raises(grpc.RpcError):
                await asyncio.to_thread(call, b"a")
            assert not held.lineage.incomplete


async def test_services_that_take_no_part_leave_no_marks(seen: Seen) -> None:
    """What a service without lineages writes is unknown to us however its calls end."""
    ours.uninstrument()
    async with served(handler(aio_methods(seen)), kind="aio") as port:
        ours.instrument()
        async with called(port, "sync") as to:
            with antipode.scope() as held:
                await to.one("unary_unary", b"a")
                with pytest.raises(grpc.RpcError):
                    await to.one("wait", b"a", timeout=0.1)
                assert not held.lineage.incomplete
            seen.leave.set()


@clients
async def test_what_was_not_executed_leaves_nothing(client: str, seen: Seen) -> None:
    """A gateway says so for a service that takes part, or gRPC where a method is missing."""
    async with served(handler(aio_methods(seen)), kind="aio") as port, called(port, client) as to:
        await to.one("unary_unary", b"a")
        with antipode.scope() as held:
            with pytest.raises(grpc.RpcError) as raised:
                await to.one("missing", b"a")
            assert code_of(raised.value) is grpc.StatusCode.UNIMPLEMENTED
            assert held.lineage == Lineage()


@clients
@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "UNAUTHENTICATED", "PERMISSION_DENIED"])
async def test_what_was_not_executed_does_not_say_who_takes_part(
    client: str, code: str, seen: Seen
) -> None:
    """Nor does an error of a service: after them a deadline is in doubt all the same."""
    ours.uninstrument()

    async def refuse(request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode[request.decode()], "no")
        return request

    methods = handler({**aio_methods(seen), "refuse": refuse})
    async with served(methods, kind="aio") as port:
        ours.instrument()
        async with called(port, client) as to:
            with antipode.scope() as held:
                for each in (code, "NOT_FOUND"):
                    with pytest.raises(grpc.RpcError):
                        await to.one("refuse", each.encode())
                assert held.lineage == Lineage()
                with pytest.raises(grpc.RpcError):
                    await to.one("wait", b"a", timeout=0.2)
                assert held.lineage.incomplete == IN_DOUBT
        seen.leave.set()


@clients
async def test_a_service_that_must_answer_is_in_doubt_without(client: str, seen: Seen) -> None:
    """Where a gateway strips trailers from the first answer on; the method's path counts."""
    ours.uninstrument()
    async with served(handler(aio_methods(seen)), kind="aio") as port:
        ours.instrument()
        antipode.configure(
            peers={f"127.0.0.1/{SERVICE}": "always", f"127.0.0.1/{SERVICE}/wait": "never"}
        )
        async with called(port, client) as to:
            with antipode.scope() as held:
                with pytest.raises(grpc.RpcError):
                    await to.one("wait", b"a", timeout=0.2)
                assert not held.lineage.incomplete
                await to.one("unary_unary", b"a")
                assert held.lineage.incomplete == IN_DOUBT
        seen.leave.set()
