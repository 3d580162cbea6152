"""itsdangerous alone: a user's second request depends on what the first one wrote."""

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.util import setup_testing_defaults

import antipode
from antipode import WriteId
from antipode.integrations import wsgi
from antipode.integrations.session import Session

WRITE = WriteId("posts", "log", 7)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["REQUEST_METHOD"] == "POST":
        antipode.append(WRITE)
    start_response("200 OK", [])
    return [antipode.serialize().encode()]


def request(method: str, cookie: str = "") -> tuple[str, str]:
    """The cookie that the answer sets, and what its request depended on."""
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ.update(REQUEST_METHOD=method, HTTP_COOKIE=cookie)
    told: list[tuple[str, str]] = []
    body = wsgi.AntipodeMiddleware(application, session=Session("a secret of sixteen"))(
        environ, lambda _status, headers, *_: told.extend(headers)
    )
    text = b"".join(body).decode()
    return dict(told).get("Set-Cookie", "").partition(";")[0], text


antipode.instrument()
cookie, _ = request("POST")
_, found = request("GET", cookie)
assert [(each.datastore, each.version) for each in antipode.deserialize(found)] == [("posts", 7)]
