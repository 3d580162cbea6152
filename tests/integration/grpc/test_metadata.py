"""gRPC metadata: the application's stays as it is, ours keeps to the limits and to its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from antipode.integrations.grpc._calling import hosts_of, may_retry
from antipode.shim import Incomplete

from ._service import (
    SERVICE,
    START,
    Seen,
    aio_methods,
    called,
    handler,
    served,
    sync_methods,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDES = [(server, client) for server in ("sync", "aio") for client in ("sync", "aio")]
sides = pytest.mark.parametrize(("server", "client"), SIDES)
#: Enough of them to be over every bound: sixty logs of different datastores.
MANY = [WriteId(f"store{n:02}", f"{n:032x}", n, written_hour=490_000) for n in range(60)]
#: Calls that would see gRPC refuse a few in a hundred.
CALLS = 40


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    forget_services()
    antipode.instrument()
    ours.instrument()
    yield
    ours.uninstrument()
    forget_services()


def methods(kind: str, seen: Seen) -> Any:
    return handler((sync_methods if kind == "sync" else aio_methods)(seen))


@pytest.mark.parametrize("client", ["sync", "aio"])
@pytest.mark.parametrize(
    "given",
    [
        None,
        (),
        (("k", "v"), ("k", "w"), ("bytes-bin", b"\x00\xff")),
        [("k", "v")],
        grpc.aio.Metadata(("k", "v"), ("bytes-bin", b"\x00")),
        (("baggage", "user=1"),),
        (("baggage", "user=1"), ("baggage", "tenant=2")),
    ],
)
async def test_the_applications_metadata_arrives(client: str, given: Any) -> None:
    """Of whatever type it is, with double keys, bytes, its own baggage; it stays as it was."""
    seen = Seen()
    before = None if given is None else tuple(given)
    async with served(methods("sync", seen), kind="sync") as port, called(port, client) as to:
        with antipode.scope(START):
            await to.one("unary_unary", b"a", metadata=given)
    assert (None if given is None else tuple(given)) == before
    ((*arrived,),) = seen.metadata
    kept = [entry for entry in arrived if entry[0] in {"k", "bytes-bin"}]
    assert kept == [entry for entry in before or () if entry[0] != "baggage"]
    (header,) = [value for key, value in arrived if key == "baggage"]
    wanted = {value for key, value in before or () if key == "baggage"}
    assert set(header.split(",")) == {*wanted, f"antipode={antipode.serialize(START)}"}
    assert seen.lineages == [START]


@sides
async def test_a_request_near_the_limit_is_never_refused_for_its_lineage(
    server: str, client: str
) -> None:
    """Beside large metadata of the application the lineage is cut, and says so."""
    seen = Seen()
    antipode.configure(max_lineage_bytes=4096)
    async with served(methods(server, seen), kind=server) as port, called(port, client) as to:
        with antipode.scope(Lineage(MANY)):
            for number in range(CALLS):
                large = (("large", "v" * (4000 + 80 * number)),)
                await to.one("unary_unary", b"a", metadata=large)
    assert len(seen.lineages) == CALLS
    for found in seen.lineages:
        lost = {write.datastore for write in MANY} - found.datastores
        marks = {mark for mark in found.incomplete if mark.reason in {"size", "stripped"}}
        assert not lost or marks


@sides
async def test_an_answer_near_the_limit_is_never_refused_for_its_lineage(
    server: str, client: str
) -> None:
    """Beside large trailing metadata of the application the lineage is cut, and says so."""
    antipode.configure(max_lineage_bytes=4096)

    def large(request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("large", "v" * int(request)),))
        for each in MANY:
            antipode.append(each)
        return b""

    async def aio_large(request: bytes, context: Any) -> bytes:
        return large(request, context)

    one = handler({"large": large if server == "sync" else aio_large})
    async with served(one, kind=server) as port, called(port, client) as to:
        for number in range(CALLS):
            with antipode.scope() as held:
                await to.one("large", b"%d" % (4000 + 100 * number))
                lost = {write.datastore for write in MANY} - held.lineage.datastores
                assert not lost or held.lineage.incomplete
    assert number == CALLS - 1


@sides
async def test_a_message_near_the_limit_is_never_lost_for_its_lineage(
    server: str, client: str
) -> None:
    """The message of an error counts into the same limit."""
    antipode.configure(max_lineage_bytes=4096)

    def fail(request: bytes, context: Any) -> None:
        for each in MANY:
            antipode.append(each)
        context.abort(grpc.StatusCode.ABORTED, "m" * int(request))

    async def aio_fail(request: bytes, context: Any) -> None:
        for each in MANY:
            antipode.append(each)
        await context.abort(grpc.StatusCode.ABORTED, "m" * int(request))

    one = handler({"fail": fail if server == "sync" else aio_fail})
    async with served(one, kind=server) as port, called(port, client) as to:
        for number in range(CALLS):
            with antipode.scope() as held:
                with pytest.raises(grpc.RpcError) as raised:
                    await to.one("fail", b"%d" % (4000 + 80 * number))
                error: Any = raised.value
                assert error.code() is grpc.StatusCode.ABORTED
                lost = {write.datastore for write in MANY} - held.lineage.datastores
                assert not lost or held.lineage.incomplete


@sides
async def test_hosts_that_may_not_know_get_nothing(server: str, client: str) -> None:
    """``egress_hosts`` goes by the channel's target, also for members that others put there."""
    seen = Seen()
    antipode.configure(egress_hosts=["internal.example"])
    async with served(methods(server, seen), kind=server) as port, called(port, client) as to:
        with antipode.scope(START) as held:
            header = f"user=1,antipode={antipode.serialize(START)}"
            await to.one("unary_unary", b"a", metadata=(("baggage", header),))
            assert held.lineage == START
        antipode.configure(egress_hosts=["127.0.0.1"])
        with antipode.scope(START) as held:
            await to.one("unary_unary", b"a")
            assert held.lineage == START.append(write("a"))
    assert seen.lineages == [Lineage(), START]
    assert ("baggage", "user=1") in seen.metadata[0]


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        ("users:50051", ("users:50051",)),
        ("users", ("users",)),
        ("dns:///users.internal:50051", ("users.internal:50051",)),
        ("dns://8.8.8.8/users:1", ("users:1",)),
        ("dns:users:1", ("users:1",)),
        ("xds:///users", ("users",)),
        ("ipv4:10.0.0.1:1,10.0.0.2:2", ("10.0.0.1:1", "10.0.0.2:2")),
        ("ipv6:[::1]:1", ("[::1]:1",)),
        ("[::1]:50051", ("[::1]:50051",)),
        ("::1", ("::1",)),
        ("unix:/run/users.sock", ("localhost",)),
        ("unix-abstract:users", ("localhost",)),
        ("", ("",)),
    ],
)
def test_targets_name_hosts(target: str, hosts: tuple[str, ...]) -> None:
    """The host is what is left without scheme and authority."""
    assert hosts_of(target) == hosts


@pytest.mark.parametrize(
    ("target", "options", "found"),
    [
        ("users:1", None, False),
        ("users:1", [("grpc.service_config", '{"loadBalancingConfig": []}')], False),
        ("users:1", [("grpc.service_config", '{"methodConfig": [{"retryPolicy": {}}]}')], True),
        ("users:1", [("grpc.service_config", '{"methodConfig": [{"hedgingPolicy": {}}]}')], True),
        ("users:1", [("grpc.service_config", "no json")], True),
        ("users:1", [("grpc.enable_retries", 0), ("grpc.service_config", "no json")], False),
        ("users:1", [("grpc.service_config_disable_resolution", 0)], True),
        ("xds:///users", None, True),
    ],
)
def test_options_tell_whether_calls_are_sent_again(
    target: str, options: Any, *, found: bool
) -> None:
    """What cannot be told counts as a retry policy."""
    assert may_retry(target, options) is found


async def test_several_addresses_must_all_be_allowed() -> None:
    """GRPC chooses among the addresses of a target: the lineage goes to none unless to all."""
    seen = Seen()
    async with served(methods("sync", seen), kind="sync") as port:
        for allowed, came in ((["127.0.0.1"], Lineage()), (["127.0.0.1", "127.0.0.2"], START)):
            antipode.configure(egress_hosts=allowed)
            with (
                grpc.insecure_channel(f"ipv4:127.0.0.1:{port},127.0.0.2:{port}") as channel,
                antipode.scope(START),
            ):
                channel.unary_unary(f"/{SERVICE}/unary_unary")(b"a")
            assert seen.lineages[-1] == came


def test_marks_name_the_service() -> None:
    """The full name, with its package, without the method."""
    with grpc.insecure_channel("127.0.0.1:1", options=[("grpc.service_config", "{}")]) as channel:
        with antipode.scope() as held, pytest.raises(grpc.RpcError):
            channel.unary_unary("/a.b.C/D")(b"", wait_for_ready=True, timeout=0.1)
        assert held.lineage.incomplete == {Incomplete("a.b.C", "in_doubt")}
