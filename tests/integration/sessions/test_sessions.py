"""Session cookies under real servers: what one request wrote, the browser's next one depends on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.integrations import aiohttp_server as on_aiohttp
from antipode.integrations import asgi as on_asgi
from antipode.integrations import wsgi as on_wsgi
from antipode.propagation import MEMBER
from antipode.shim import SYSTEM_CLOCK
from antipode.telemetry import metrics
from tests.integration._ingress import CAME, Answer, aiohttp, asgi, ask, sent, wsgi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("uvicorn")
pytest.importorskip("itsdangerous")

from antipode.integrations.session import Session

#: What the application writes, in the hour of the test.
WROTE = WriteId("orders", "order:1", 3, written_hour=0)
KEY, NEW_KEY = "a secret of the service", "another secret of it"
SERVERS = ["asgi", "wsgi", "aiohttp"]
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "sessions.md"
ATTRIBUTES = "; Max-Age=60; Path=/; HttpOnly; SameSite=Lax"


@pytest.fixture(autouse=True)
def _written_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour that ended a minute ago is not carried on, and tests are collected long before."""
    monkeypatch.setitem(globals(), "WROTE", replace(WROTE, written_hour=SYSTEM_CLOCK.hour()))


def work(path: str) -> list[tuple[str, str]]:
    """What the application does; the headers of its response."""
    if path.startswith("/write"):
        antipode.append(WROTE)
    if path.startswith("/more"):
        antipode.append(WriteId("users", "user:1", 4, written_hour=SYSTEM_CLOCK.hour()))
    if path.endswith("/public"):
        return [("Cache-Control", "public, max-age=60"), ("X-Own", "1")]
    return [("Set-Cookie", "theirs=1"), ("X-Own", "1")]


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    headers = [(name.encode(), value.encode()) for name, value in work(scope["path"])]
    body = antipode.serialize().encode()
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/stream/write":
        antipode.append(WROTE)
    await send({"type": "http.response.body", "body": body})


def wsgi_app(environ: Any, start_response: Any) -> Iterator[bytes]:
    headers = work(environ["PATH_INFO"])
    start_response("200 OK", headers)
    body = antipode.serialize().encode()
    if environ["PATH_INFO"] == "/stream/write":
        antipode.append(WROTE)
    yield body


async def aiohttp_handler(request: web.Request) -> web.StreamResponse:
    headers = CIMultiDict(work(request.path))
    body = antipode.serialize().encode()
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    if request.path == "/stream/write":
        antipode.append(WROTE)
    await response.write(body)
    return response


def aiohttp_app() -> web.Application:
    app = web.Application()
    app.router.add_get("/{path:.*}", aiohttp_handler)
    return app


@contextmanager
def site(server: str, session: Session | None) -> Iterator[int]:
    """The application under a server; the port."""
    if server == "asgi":
        with asgi(on_asgi.AntipodeMiddleware(asgi_app, session=session)) as port:
            yield port
    elif server == "aiohttp":
        with aiohttp(on_aiohttp.instrument_app(aiohttp_app(), session=session)) as port:
            yield port
    else:
        with wsgi(on_wsgi.AntipodeMiddleware(wsgi_app, session=session)) as port:
            yield port


def cookies(answer: Answer) -> list[str]:
    """What our cookie is set to, with all attributes."""
    set_cookies = [value for name, value in answer.headers if name == "set-cookie"]
    return [value for value in set_cookies if value.startswith("antipode=")]


def cookie(answer: Answer) -> dict[str, str]:
    """The header of the request that comes after *answer*."""
    (found,) = cookies(answer)
    return {"Cookie": f"theirs=1; {found.partition(';')[0]}; other=antipode=x"}


def held(answer: Answer) -> Lineage:
    """What the request depended on in the end."""
    return antipode.deserialize(answer.body.decode())


def header(answer: Answer, name: str) -> list[str]:
    """The values of a header."""
    return [value for each, value in answer.headers if each == name]


def counted(name: str) -> int:
    """How often something was counted."""
    return sum(number for metric, number in metrics().items() if metric.name == name)


@pytest.mark.parametrize("server", SERVERS)
def test_the_next_request_depends_on_what_one_wrote(server: str) -> None:
    """By the cookie alone; the application's own cookies and headers stay; no cache keeps it."""
    with site(server, Session(KEY)) as port:
        assert not cookies(ask(port, "/"))
        wrote = ask(port, "/write")
        (found,) = cookies(wrote)
        assert re.fullmatch(r"antipode=[A-Za-z0-9._~:!-]+" + re.escape(ATTRIBUTES), found)
        assert header(wrote, "cache-control") == ["private"]
        assert "theirs=1" in header(wrote, "set-cookie")
        assert header(wrote, "x-own") == ["1"]
        read = ask(port, "/", cookie(wrote))
        assert held(read) == Lineage([WROTE])
        assert not cookies(read)
        assert not header(read, "cache-control")
        more = ask(port, "/more", cookie(wrote))
        assert held(ask(port, "/", cookie(more))) == held(more)
        assert len(held(more)) == 2


@pytest.mark.parametrize("server", SERVERS)
def test_a_service_is_answered_as_ever(server: str) -> None:
    """What its cookie said came with its request: the answer does not bring it back."""
    with site(server, Session(KEY)) as port:
        wrote = ask(port, "/write", sent(CAME))
        assert wrote.lineage == Lineage([WROTE])
        read = ask(port, "/", {**cookie(wrote), **sent(CAME)})
        assert read.lineage == Lineage()
        assert held(read) == Lineage([WROTE, CAME])


@pytest.mark.parametrize("server", SERVERS)
def test_keys_are_changed_without_a_loss(server: str) -> None:
    """A key that is known as an older one is believed, and the new one signs."""
    with site(server, Session(KEY)) as port:
        old = cookie(ask(port, "/write"))
    with site(server, Session(NEW_KEY, KEY)) as port:
        assert held(ask(port, "/", old)) == Lineage([WROTE])
        new = cookie(ask(port, "/more", old))
    forged = counted("session_forged")
    with site(server, Session(NEW_KEY)) as port:
        assert len(held(ask(port, "/", new))) == 2
        answer = ask(port, "/", old)
        assert held(answer) == Lineage()
        assert cookies(answer) == ["antipode=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"]
    assert counted("session_forged") == forged + 1


@pytest.mark.parametrize("server", SERVERS)
def test_nothing_of_a_user_is_in_what_a_shared_cache_keeps(server: str) -> None:
    """The response goes as the application made it, and that is counted."""
    before = counted("session_unset")
    with site(server, Session(KEY)) as port:
        answer = ask(port, "/write/public")
    assert not cookies(answer)
    assert header(answer, "cache-control") == ["public, max-age=60"]
    assert counted("session_unset") == before + 1


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_body_writes_is_after_the_cookie(server: str) -> None:
    """Headers go first: what is written while a body is sent is in no cookie, and counted."""
    before = counted("after_response_write")
    with site(server, Session(KEY)) as port:
        answer = ask(port, "/stream/write")
    assert not cookies(answer)
    assert counted("after_response_write") == before + 1


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "value",
    [
        "antipode=",
        "antipode=;antipode=;;=",
        "antipode=" + "x" * 3000,
        "antipode=1:1~ka.5.k",
        "antipode=\xff\xfe.\xe9",
        "antipode=" + "." * 500,
    ],
)
def test_hostile_cookies_are_ignored(server: str, value: str) -> None:
    """No error, no lineage, no mark: nobody can make a request of anybody incomplete."""
    before = counted("session_forged")
    with site(server, Session(KEY)) as port:
        answer = ask(port, "/", {"Cookie": value})
        assert (answer.status, held(answer)) == (200, Lineage())
        assert counted("session_forged") > before
        assert len(cookies(ask(port, "/write", {"Cookie": value}))) == 1


@pytest.mark.parametrize("server", SERVERS)
def test_what_has_no_equals_sign_is_no_cookie(server: str) -> None:
    """A name alone is passed over: nothing is forged, and no cookie is removed."""
    before = counted("session_forged")
    with site(server, Session(KEY)) as port:
        answer = ask(port, "/", {"Cookie": "antipode; antipode;"})
        assert (answer.status, held(answer), cookies(answer)) == (200, Lineage(), [])
        assert len(cookies(ask(port, "/write", {"Cookie": "antipode"}))) == 1
    assert counted("session_forged") == before


def test_a_value_of_another_use_of_the_key_is_forged() -> None:
    """What the application signs with the same key is no cookie of ours."""
    import itsdangerous

    signed = itsdangerous.Signer(KEY).sign("1:1~ka.5.k").decode()
    with site("asgi", Session(KEY)) as port:
        assert held(ask(port, "/", {"Cookie": f"antipode={signed}"})) == Lineage()


def test_attributes() -> None:
    """Secure where the request was, or it is said; path, domain and name as they are given."""
    session = Session(KEY, cookie="__Secure-seen", path="/shop", domain="example.org")
    for scheme, given, secure in [
        ("https", session, True),
        ("http", session, False),
        ("http", Session(KEY, secure=True), True),
        ("https", Session(KEY, secure=False), False),
    ]:
        sent_headers: list[tuple[str, str]] = []

        def start(status: str, headers: list[tuple[str, str]], into: Any = sent_headers) -> Any:
            into += headers

        app: Callable[..., Any] = on_wsgi.AntipodeMiddleware(wsgi_app, session=given)
        body = app({"PATH_INFO": "/write", "wsgi.url_scheme": scheme}, start)
        assert b"".join(body)
        body.close()
        ours = [v for n, v in sent_headers if n == "Set-Cookie" and v.startswith(given.name)]
        assert len(ours) == 1
        assert ("; Secure;" in ours[0]) is secure
        assert ("; Path=/shop; Domain=example.org;" in ours[0]) is (given is session)


def test_instrument_app_takes_it() -> None:
    """Flask and FastAPI alike."""
    fastapi, flask = pytest.importorskip("fastapi"), pytest.importorskip("flask")
    on_fastapi, on_flask = fastapi.FastAPI(), flask.Flask("shop")

    @on_fastapi.post("/write")
    @on_flask.post("/write")
    def write() -> dict[str, str]:
        antipode.append(WROTE)
        return {}

    on_asgi.instrument_app(on_fastapi, session=Session(KEY))
    on_wsgi.instrument_app(on_flask, session=Session(KEY))
    for serve, app in (asgi, on_fastapi), (wsgi, on_flask):
        with serve(app) as port:
            assert len(cookies(ask(port, "/write", method="POST"))) == 1


def test_a_cookie_is_never_longer_than_its_bound() -> None:
    """Whatever a request wrote; what does not fit is a mark in it."""

    def app(environ: Any, start_response: Any) -> list[bytes]:
        for number in range(200):
            antipode.append(WriteId("orders", f"order:{number}" * 8, 1))
        start_response("200 OK", [])
        return [b""]

    def read(environ: Any, start_response: Any) -> list[bytes]:
        found.append(antipode.current())
        start_response("200 OK", [])
        return [b""]

    found: list[Lineage] = []
    with wsgi(on_wsgi.AntipodeMiddleware(app, session=Session(KEY))) as port:
        answer = ask(port)
    (value,) = cookies(answer)
    assert len(value.partition(";")[0]) <= 1024
    with wsgi(on_wsgi.AntipodeMiddleware(read, session=Session(KEY))) as port:
        ask(port, "/", cookie(answer))
    assert ("orders", "size") in found[0].incomplete
    assert len(found[0]) > 5


@pytest.mark.parametrize(
    "given",
    [
        {"key": "short"},
        {"key": b"bytes are no text at all"},
        {"key": KEY, "cookie": ""},
        {"key": KEY, "cookie": "a=b"},
        {"key": KEY, "cookie": "n" * 65},
        {"key": KEY, "path": "/;x"},
        {"key": KEY, "domain": "a\r\nSet-Cookie: b"},
    ],
)
def test_what_no_browser_would_take_is_refused(given: dict[str, Any]) -> None:
    """At start-up, with what to say instead."""
    with pytest.raises(ConfigurationError):
        Session(**given)


def test_nothing_in_the_cookie_is_more_than_names_and_positions() -> None:
    """It is signed, not hidden: who has it sees what egress lets out, which here is nothing."""
    antipode.configure(egress=())
    with site("wsgi", Session(KEY)) as port:
        (found,) = cookies(ask(port, "/write"))
    assert "~iegress.-" in found
    assert WROTE.datastore not in found
    assert MEMBER in found


def test_the_guides_application() -> None:
    """The application of docs/guides/sessions.md, as it stands there."""
    pytest.importorskip("fastapi")
    block, _ = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": __name__, "__file__": __file__}
    exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102 - the guide's own example

    @names["app"].get("/")
    def read() -> str:
        return antipode.serialize()

    @names["app"].post("/")
    def write() -> None:
        antipode.append(WROTE)

    with asgi(names["app"]) as port:
        read_again = ask(port, "/", cookie(ask(port, "/", method="POST")))
    assert antipode.deserialize(json.loads(read_again.body)) == Lineage([WROTE])


async def test_a_websocket_starts_from_the_cookie_and_sets_none() -> None:
    """Its connection has one scope, which begins with what the page's requests wrote."""
    with site("asgi", Session(KEY)) as port:
        header = cookie(ask(port, "/write"))["Cookie"].encode()
    found: list[Lineage] = []
    sent_messages: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(antipode.current())
        antipode.append(WriteId("users", "user:1", 4))
        await send({"type": "websocket.accept", "headers": []})

    async def send(message: Any) -> None:
        sent_messages.append(message)

    async def receive() -> Any:
        raise AssertionError

    scope = {"type": "websocket", "headers": [(b"cookie", header)], "scheme": "wss"}
    await on_asgi.AntipodeMiddleware(app, session=Session(KEY))(scope, receive, send)
    assert found == [Lineage([WROTE])]
    assert sent_messages == [{"type": "websocket.accept", "headers": []}]


def test_a_disabled_process_reads_and_sets_none() -> None:
    """The kill switch leaves the application as it is without us, cookies included."""
    program = """
import antipode
from antipode.integrations import wsgi
from antipode.integrations.session import Session

def app(environ, start_response):
    antipode.append(antipode.WriteId("orders", "order:1", 3))
    start_response("200 OK", [("X-Own", "1")])
    return [b""]

wsgi.AntipodeMiddleware(app, session=Session("a secret of the service"))(
    {"HTTP_COOKIE": "antipode=forged"}, lambda status, headers: print(headers)
)
"""
    environment = {**os.environ, "ANTIPODE_DISABLED": "true"}
    command = [sys.executable, "-c", program]
    told = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout == "[('X-Own', '1')]\n"
