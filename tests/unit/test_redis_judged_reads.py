"""How an instrumented Redis client makes a read that a dry run judges, without a server."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import redis
import redis.asyncio

from antipode.shim import Floor
from antipode_shims.redis import instrument_client
from antipode_shims.redis._clients.call import CALL, Call


class Conversation:
    """A fake connection that notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, Any]] = []

    def send_command(self, *args: Any, **options: Any) -> None:
        self.asked.append(("send", args, options))

    def read_response(self, *args: Any, **options: Any) -> bytes:
        self.asked.append(("read", args, options))
        return b"value"


class AsyncConversation(Conversation):
    """Its asyncio twin."""

    async def send_command(self, *args: Any, **options: Any) -> None:  # type: ignore[override]
        super().send_command(*args, **options)

    async def read_response(self, *args: Any, **options: Any) -> bytes:  # type: ignore[override]
        return super().read_response(*args, **options)


#: As redis-py hands a read's arguments on.
ARGUMENTS: tuple[Any, ...] = ("GET", "GET", "key")
OPTIONS: dict[str, Any] = {"keys": ["key"]}


def judged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let the next read be one that a dry run judges; what it was told."""
    told: list[Any] = []
    for hooks in "hooks", "async_hooks":
        name = f"antipode_shims.redis._clients.{hooks}.read_sent"
        monkeypatch.setattr(name, lambda *given: told.append(given))
    unjudged: Any = (None, None)
    shim: Any = None
    CALL.set([(shim, unjudged, sys._getframe())])
    return told


def alike(ours: Conversation, plain: Conversation) -> bool:
    """Whether the same was asked; options that an older redis-py leaves out change nothing."""
    return len(ours.asked) == len(plain.asked) and all(
        mine[:2] == theirs[:2] and mine[2].items() >= theirs[2].items()
        for mine, theirs in zip(ours.asked, plain.asked, strict=True)
    )


def test_read_that_is_judged_is_made_as_redis_py_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where redis-py does more than to send and to read, a read in a dry run must, too."""
    client = redis.Redis()
    plain, ours = Conversation(), Conversation()
    call: Any = client._send_command_parse_response  # type: ignore[attr-defined]
    expected = call(plain, *ARGUMENTS, **OPTIONS)
    instrument_client(client, datastore="posts", reads_from="replica")
    told = judged(monkeypatch)
    call = client._send_command_parse_response  # type: ignore[attr-defined]
    assert call(ours, *ARGUMENTS, **OPTIONS) == expected
    assert alike(ours, plain)
    assert len(told) == 1
    assert call(ours, *ARGUMENTS, **OPTIONS) == expected  # Sent again.
    assert len(told) == 1


async def test_asyncio_read_that_is_judged_is_made_as_redis_py_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the synchronous client."""
    client = redis.asyncio.Redis()
    plain, ours = AsyncConversation(), AsyncConversation()
    call: Any = client._send_command_parse_response  # type: ignore[attr-defined]
    expected = await call(plain, *ARGUMENTS, **OPTIONS)
    instrument_client(client, datastore="posts", reads_from="replica")
    told = judged(monkeypatch)
    call = client._send_command_parse_response  # type: ignore[attr-defined]
    assert await call(ours, *ARGUMENTS, **OPTIONS) == expected
    assert alike(ours, plain)
    assert len(told) == 1
    assert await call(ours, *ARGUMENTS, **OPTIONS) == expected
    assert len(told) == 1


#: What a primary answers to a look.
INFO = (
    b"# Replication\r\nrole:master\r\nconnected_slaves:1\r\nmaster_replid:1\r\nmaster_replid2:0"
    b"\r\nmaster_repl_offset:7\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:1\r\n"
)


class Link:
    """A fake connection that notes what happens to it, and answers looks and reads by turns."""

    _sock = is_connected = True

    def __init__(self) -> None:
        self.happened: list[str] = []
        self._packer = redis.Connection()

    def pack_command(self, *args: Any) -> Any:
        return self._packer.pack_command(*args)

    def pack_commands(self, commands: Any) -> Any:
        return self._packer.pack_commands(commands)

    def check_health(self) -> None:
        pass

    def send_packed_command(self, *_: Any, **__: Any) -> None:
        self.happened.append("sent")

    def read_response(self, **_: Any) -> Any:
        self.happened.append("read")
        return INFO if self.happened.count("read") % 2 else b"value"


class AsyncLink(Link):
    """Its asyncio twin."""

    async def check_health(self) -> None:  # type: ignore[override]
        pass

    async def send_packed_command(self, *_: Any, **__: Any) -> None:  # type: ignore[override]
        super().send_packed_command()

    async def read_response(self, **_: Any) -> Any:
        return super().read_response()


def listen(link: Link, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let *link* note when *module* tells a dry run of a read."""
    name = f"antipode_shims.redis._clients.{module}.read_sent"
    monkeypatch.setattr(name, lambda *_: link.happened.append("told"))


def begin(client: Any, **given: Any) -> Call:
    """Let the next read of *client* be of a call whose reads a dry run judges."""
    call = Call(client._antipode.shim, **given)
    unjudged: Any = (None, None)
    call.asked, call.untold = True, [(call.shim, unjudged, sys._getframe())]
    CALL.set(call)
    return call


def under_a_floor(client: Any, link: Link, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Let the next read of *client* be judged by a dry run, and look as well."""
    listen(link, "tap", monkeypatch)
    instrument_client(client, datastore="posts", reads_from="replica")
    policies: Any = None
    return begin(client, held=Floor("posts", frozenset(), timeout_s=1, policies=policies))


def test_read_under_a_floor_is_told_between_its_packet_and_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a dry run takes is not added to what the server takes, a look included."""
    client, link = redis.Redis(), Link()
    call = under_a_floor(client, link, monkeypatch)
    send: Any = client._send_command_parse_response  # type: ignore[attr-defined]
    assert send(link, *ARGUMENTS, **OPTIONS) == b"value"
    assert link.happened == ["sent", "told", "read", "read"]
    assert call.untold == []


async def test_asyncio_read_under_a_floor_is_told_between_its_packet_and_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the synchronous client."""
    client, link = redis.asyncio.Redis(), AsyncLink()
    call = under_a_floor(client, link, monkeypatch)
    send: Any = client._send_command_parse_response  # type: ignore[attr-defined]
    assert await send(link, *ARGUMENTS, **OPTIONS) == b"value"
    assert link.happened == ["sent", "told", "read", "read"]
    assert call.untold == []


class Beside(Link):
    """A fake connection that answers a read, with a lineage beside it, and what rides behind."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = self._packer.encoder
        self._replies = iter([b"OK", b"QUEUED", b"QUEUED", [b"value", [None]], INFO])

    def read_response(self, **_: Any) -> Any:
        self.happened.append("read")
        return next(self._replies)


class AsyncBeside(AsyncLink, Beside):
    """Its asyncio twin."""


def beside(client: Any, link: Link, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What *client* makes a read by, a lineage beside it, that a dry run judges."""
    listen(link, "tap", monkeypatch)
    instrument_client(
        client, datastore="posts", reads_from="replica", lineage="beside", keys=["key"]
    )
    begin(client)
    return client._send_command_parse_response


def test_read_with_a_lineage_beside_is_told_between_its_packet_and_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is read along with it is in the same packet."""
    link = Beside()
    send = beside(redis.Redis(), link, monkeypatch)
    assert send(link, *ARGUMENTS, **OPTIONS) == b"value"
    assert link.happened == ["sent", "told", *["read"] * 5]


async def test_asyncio_read_with_a_lineage_beside_is_told_between_its_packet_and_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the synchronous client."""
    link = AsyncBeside()
    send = beside(redis.asyncio.Redis(), link, monkeypatch)
    assert await send(link, *ARGUMENTS, **OPTIONS) == b"value"
    assert link.happened == ["sent", "told", *["read"] * 5]


class Replies(Link):
    """A fake connection that answers a pipeline's commands, in a transaction or not."""

    def __init__(self, *, transaction: bool = False, refuses: bool = False) -> None:
        super().__init__()
        values = [b"1", b"2"]
        self._replies = iter([b"OK", b"QUEUED", b"QUEUED", values] if transaction else values)
        self._refuses = refuses

    def send_packed_command(self, *_: Any, **__: Any) -> None:
        if self._refuses:
            raise redis.ConnectionError
        super().send_packed_command()

    def send_command(self, *_: Any, **__: Any) -> Any:
        return self.send_packed_command()

    def read_response(self, **_: Any) -> Any:
        self.happened.append("read")
        return next(self._replies)


class AsyncReplies(AsyncLink, Replies):
    """Its asyncio twin."""


#: A pipeline's reads, as it queues them.
QUEUED: list[Any] = [(("GET", "key"), {}), (("GET", "other"), {})]


def in_a_pipeline(client: Any, link: Link, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pipeline of *client* whose reads are judged by a dry run, and nothing else."""
    listen(link, "call", monkeypatch)
    instrument_client(client, datastore="posts", reads_from="replica")
    pipe = client.pipeline()
    begin(client, pipeline=pipe)
    return pipe


@pytest.mark.parametrize("transaction", [False, True])
def test_reads_of_a_pipeline_are_told_between_their_packet_and_the_answers(
    *, transaction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a single read is: it is one packet, and one record."""
    link = Replies(transaction=transaction)
    pipe = in_a_pipeline(redis.Redis(), link, monkeypatch)
    send = pipe._execute_transaction if transaction else pipe._execute_pipeline
    assert send(link, QUEUED, raise_on_error=True) == [b"1", b"2"]
    assert link.happened[:3] == ["sent", "told", "read"]
    assert link.happened.count("told") == 1
    assert "parse_response" not in vars(pipe)


@pytest.mark.parametrize("transaction", [False, True])
async def test_asyncio_reads_of_a_pipeline_are_told_between_their_packet_and_the_answers(
    *, transaction: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the synchronous client."""
    link = AsyncReplies(transaction=transaction)
    pipe = in_a_pipeline(redis.asyncio.Redis(), link, monkeypatch)
    send = pipe._execute_transaction if transaction else pipe._execute_pipeline
    assert await send(link, QUEUED, raise_on_error=True) == [b"1", b"2"]
    assert link.happened[:3] == ["sent", "told", "read"]
    assert link.happened.count("told") == 1
    assert "parse_response" not in vars(pipe)


def test_pipeline_keeps_a_method_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test's double put there stays; the reads are told of before they are sent."""
    link = Replies()
    pipe = in_a_pipeline(redis.Redis(), link, monkeypatch)
    own = pipe.parse_response
    pipe.parse_response = own
    assert pipe._execute_pipeline(link, QUEUED, raise_on_error=True) == [b"1", b"2"]
    assert link.happened == ["told", "sent", "read", "read"]
    assert vars(pipe)["parse_response"] is own


def test_read_between_watch_and_multi_is_told_between_its_packet_and_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is sent at once, by the pipeline."""
    link = Replies()
    pipe = in_a_pipeline(redis.Redis(), link, monkeypatch)
    assert pipe._send_command_parse_response(link, *ARGUMENTS, **OPTIONS) == b"1"
    assert link.happened == ["sent", "told", "read"]


async def test_asyncio_read_between_watch_and_multi_is_told_between_its_packet_and_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the synchronous client."""
    link = AsyncReplies()
    pipe = in_a_pipeline(redis.asyncio.Redis(), link, monkeypatch)
    assert await pipe._send_command_parse_response(link, *ARGUMENTS, **OPTIONS) == b"1"
    assert link.happened == ["sent", "told", "read"]


def test_pipeline_that_was_never_sent_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the attempt is in the way of the next one, nor told by it."""
    link = Replies(refuses=True)
    pipe = in_a_pipeline(redis.Redis(), link, monkeypatch)
    with pytest.raises(redis.ConnectionError):
        pipe._execute_pipeline(link, QUEUED, raise_on_error=True)
    assert link.happened == []
    assert "parse_response" not in vars(pipe)
