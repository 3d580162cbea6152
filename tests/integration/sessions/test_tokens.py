"""Tokens of events: the page of another user depends on what the event tells."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK
from antipode_shims import redis as redis_shims
from tests.integration._ingress import asgi, ask
from tests.integration.redis._clients import client

from .test_sessions import GUIDE, KEY, SERVERS, cookies, counted, held, site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.client import HTTPResponse

    from antipode_testing import RedisTopology

pytest.importorskip("uvicorn")
pytest.importorskip("itsdangerous")

from antipode.integrations.session import Session

EVENTS, LAG_MS = 50, 40


def wrote(key: str) -> WriteId:
    """A write of this hour: what is old goes into no token."""
    return WriteId("orders", key, 3, written_hour=SYSTEM_CLOCK.hour())


def token_of(session: Session, *writes: WriteId) -> str:
    """A token of a request that depends on *writes*."""
    with antipode.scope(Lineage(writes)):
        return session.token()


@pytest.mark.parametrize("server", SERVERS)
def test_a_page_depends_on_the_events_whose_tokens_it_sends(server: str) -> None:
    """On all of them, in one header; the user's cookie is not touched."""
    session, one, other = Session(KEY), wrote("order:1"), wrote("order:2")
    tokens = ", ".join(token_of(session, each) for each in (one, other))
    with site(server, session) as port:
        page = ask(port, "/", {"antipode-session": tokens})
        assert (held(page), cookies(page)) == (Lineage([one, other]), [])
        empty = ask(port, "/", {"antipode-session": token_of(session)})
        assert (held(empty), cookies(empty)) == (Lineage(), [])


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("value", ["x" * 3000, "1:1~ka.5.k", "\xff\xfe.\xe9", "." * 500])
def test_hostile_tokens_are_ignored(server: str, value: str) -> None:
    """No error, no lineage, no mark, no cookie removed."""
    before = counted("session_forged")
    with site(server, Session(KEY)) as port:
        answer = ask(port, "/", {"antipode-session": value})
        assert (answer.status, held(answer), cookies(answer)) == (200, Lineage(), [])
    assert counted("session_forged") == before + 1


def test_there_is_no_token_outside_of_a_request() -> None:
    """A program that depends on nothing has nothing to say."""
    assert Session(KEY).token() == ""


@contextmanager
def changes(port: int) -> Iterator[HTTPResponse]:
    """What a page of another user is told."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/changes")
        with connection.getresponse() as events:
            yield events


@pytest.mark.store("redis")
def test_the_page_of_another_user_shows_what_its_event_tells(antipode_redis: RedisTopology) -> None:
    """The application of docs/guides/sessions.md, over a replica that is late: all of its events.

    The same page without the token shows what was there before.
    """
    pytest.importorskip("fastapi")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": __name__, "__file__": __file__}
    exec(compile("\n".join(blocks), str(GUIDE), "exec"), names)  # noqa: S102 - the guide's own example
    primary, replica = map(client, (antipode_redis.primary, antipode_redis.replica))
    redis_shims.instrument_client(primary, datastore="orders")
    redis_shims.instrument_client(replica, datastore="orders", reads_from="replica")

    @names["app"].post("/orders/{order}")
    async def save(order: int) -> None:
        await asyncio.to_thread(primary.set, "order", order)
        names["tell"](order)

    @names["app"].get("/orders")
    def show() -> int:
        return int(replica.get("order") or 0)

    antipode.configure(barriers="auto")
    antipode_redis.set_lag(LAG_MS)
    late = right = 0
    try:
        with asgi(names["app"]) as port, changes(port) as events:
            for order in range(1, EVENTS + 1):
                ask(port, f"/orders/{order}", method="POST")
                event = json.loads(events.readline().removeprefix(b"data: "))
                assert (event["order"], events.readline()) == (order, b"\n")
                late += int(ask(port, "/orders").body) < order
                page = ask(port, "/orders", {"antipode-session": event["antipode"]})
                right += int(page.body) == order
    finally:
        antipode_redis.set_lag(0)
        for each in (primary, replica):
            redis_shims.uninstrument_client(each)
            each.close()
    assert right == EVENTS
    assert late
