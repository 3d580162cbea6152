"""Servers whose requests are calls: each unsafe request runs by the name that it came with.

ASGI (FastAPI, Starlette, Django's, any other) and WSGI (Flask, Django's, any other).
"""

from __future__ import annotations

import inspect
import json
import math
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import switchable

from . import _names
from ._current import call
from ._errors import CallError
from ._http import SAFE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import Self

    #: Makes the caller's identity of an ASGI scope or a WSGI environment.
    Caller = Callable[[Mapping[str, Any]], str | None]
    Headers = list[tuple[str, str]]

#: In the scope or environment of a request that is a call.
_MARKER = "antipode.call"
_HEADER = _names.HEADER.encode()
_KEY = _names.IDEMPOTENCY_KEY.encode()


@switchable
def instrument_server(
    app: Any,
    *,
    caller: Caller | None = None,
) -> Any:
    """Let each request of *app* that is not GET, HEAD, OPTIONS or TRACE be a call.

    Its name is the header ``antipode-call``, else ``Idempotency-Key``; without both it has none,
    and its repetition is another call. A name that is none is answered with 400, and nothing of the
    application runs. A :class:`CallError` that leaves the application is answered with its status,
    with ``Retry-After`` where it has one, and with its code and message as JSON.

    In FastAPI and Starlette it is a middleware: those that are added later are around it. Of Django
    it covers errors of views; those of middlewares are Django's to answer. Idempotent.

    Args:
        app: an application of FastAPI, Starlette, Flask, Django (what ``get_wsgi_application`` or
            ``get_asgi_application`` returns), of Celery (see :func:`instrument_celery`), or any
            ASGI 3 or WSGI application.
        caller: gives whose request it is, of the ASGI scope or the WSGI environment: an account
            that the request is authenticated for. A name of one caller is another one's name of
            something else. None: all callers are one.

    Returns:
        What is to be served: *app* itself for FastAPI, Starlette and Flask, else an application
        around it.

    Raises:
        ConfigurationError: it is none of these, or it serves already.
    """
    if isinstance(app, AsgiCalls | WsgiCalls):
        return app
    if _of(app, "celery", "Celery"):
        from ._celery import instrument_celery

        return instrument_celery(app)
    if _of(app, "starlette.applications", "Starlette"):
        return _starlette(app, caller)
    if _of(app, "flask", "Flask"):
        return _flask(app, caller)
    if _of(app, "django.core.handlers.base", "BaseHandler"):
        _answer_in_django(app)
    return _around(app)(app, caller=caller)


def _of(app: object, module: str, name: str) -> bool:
    """Whether *app* is of that class, which nobody has to install or import for us."""
    found = sys.modules.get(module)
    return found is not None and isinstance(app, getattr(found, name))


def _around(app: Any) -> type[AsgiCalls | WsgiCalls]:
    """What goes around an application, by its protocol.

    Raises:
        ConfigurationError: it has none of ours.
    """
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(_method(app)):
        return AsgiCalls
    try:
        parameters = list(inspect.signature(app).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        each
        for each in parameters
        if each.kind in plain and each.default is inspect.Parameter.empty
    ]
    for number, kind in ((2, WsgiCalls), (3, AsgiCalls)):
        if len(required) == number:
            return kind
    msg = (
        f"{app!r} is no application of ASGI 3 or WSGI: pass what a server such as uvicorn or "
        "gunicorn is given"
    )
    raise ConfigurationError(msg)


def _method(app: object) -> object:
    return getattr(type(app), "__call__", None)  # noqa: B004 - its kind is asked for


def _starlette(app: Any, caller: Caller | None) -> Any:
    if any(each.cls is AsgiCalls for each in app.user_middleware):
        return app
    try:
        app.add_middleware(AsgiCalls, caller=caller)
    except RuntimeError as error:
        raise _late(app) from error
    return app


def _flask(app: Any, caller: Caller | None) -> Any:
    if isinstance(app.wsgi_app, WsgiCalls):
        return app
    known = app.error_handler_spec.get(None, {}).get(None, {})
    if CallError not in known:
        try:
            app.register_error_handler(CallError, _flask_response)
        except AssertionError as error:
            raise _late(app) from error
    app.wsgi_app = WsgiCalls(app.wsgi_app, caller=caller)
    return app


def _flask_response(error: CallError) -> tuple[bytes, int, Headers]:
    return _body(error), error.status, _headers(error)


def _answer_in_django(handler: Any) -> None:
    """Have errors of views answered, after the middlewares of the site have seen them."""
    answers = getattr(handler, "_exception_middleware", None)
    if answers is None:
        msg = f"{handler!r} has no middlewares: pass what get_wsgi_application() returns"
        raise ConfigurationError(msg)
    if _django_response not in answers:
        answers.append(_django_response)


def _django_response(_: object, error: Exception) -> Any:
    if not isinstance(error, CallError):
        return None
    from django.http import HttpResponse

    return HttpResponse(_body(error), status=error.status, headers=dict(_headers(error)))


def _late(app: object) -> ConfigurationError:
    msg = f"{app!r} serves already: instrument it where it is made, before its first request"
    return ConfigurationError(msg)


def _named(name: str | None, key: str | None, caller: str | None) -> call:
    """The block in which a request with these headers is handled.

    Raises:
        BadName: what came is no name.
    """
    if name is not None:
        return call(_names.decode(name), caller=caller or "")
    return call(None if key is None else _names.of_key(key), caller=caller or "")


def _body(error: CallError) -> bytes:
    """What is answered to *error*."""
    return json.dumps({"code": error.code, "message": str(error)}).encode()


def _headers(error: CallError) -> Headers:
    """The headers of :func:`_body`."""
    headers = [("content-type", "application/json"), ("content-length", str(len(_body(error))))]
    if error.retry_after is not None:
        headers.append(("retry-after", str(max(1, math.ceil(error.retry_after)))))
    return headers


class AsgiCalls:
    """An ASGI 3 application around another one; see :func:`instrument_server`."""

    def __init__(self, app: Any, *, caller: Caller | None = None) -> None:
        """Go around *app*."""
        self.app = app
        self._caller = caller

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] in SAFE or _MARKER in scope:
            await self.app(scope, receive, send)
            return
        started = False

        async def starting(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        scope[_MARKER] = True
        try:
            with self._block(scope):
                await self.app(scope, receive, starting)
        except CallError as error:
            if started:
                raise
            await _answer(error, send)
        finally:
            scope.pop(_MARKER, None)

    def _block(self, scope: Any) -> call:
        name, key = (
            [value.decode("latin-1") for each, value in scope["headers"] if each == wanted]
            for wanted in (_HEADER, _KEY)
        )
        caller = None if self._caller is None else self._caller(scope)
        return _named(_joined(name), _joined(key), caller)


def _joined(values: list[str]) -> str | None:
    """A header as one value, as WSGI servers join it; None without one."""
    return ",".join(values) if values else None


async def _answer(error: CallError, send: Any) -> None:
    headers = [(name.encode(), value.encode()) for name, value in _headers(error)]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": _body(error)})


class WsgiCalls:
    """A WSGI application around another one; see :func:`instrument_server`."""

    def __init__(self, app: Any, *, caller: Caller | None = None) -> None:
        """Go around *app*."""
        self.app = app
        self._caller = caller

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        if environ["REQUEST_METHOD"] in SAFE or _MARKER in environ:
            parts: Iterable[bytes] = self.app(environ, start_response)
            return parts
        environ[_MARKER] = True
        try:
            block = self._block(environ)
            with block:
                parts = self.app(environ, start_response)
        except CallError as error:
            status = f"{error.status} {HTTPStatus(error.status).phrase}"
            start_response(status, _headers(error), sys.exc_info())
            return [_body(error)]
        finally:
            environ.pop(_MARKER, None)
        return parts if _is_made(parts, environ) else _Body(parts, block)

    def _block(self, environ: dict[str, Any]) -> call:
        caller = None if self._caller is None else self._caller(environ)
        name, key = (
            environ.get(f"HTTP_{each.upper().replace('-', '_')}")
            for each in (_names.HEADER, _names.IDEMPOTENCY_KEY)
        )
        return _named(name, key, caller)


def _is_made(parts: Iterable[bytes], environ: dict[str, Any]) -> bool:
    """Whether no code of the application runs while *parts* are sent."""
    files = environ.get("wsgi.file_wrapper")
    return isinstance(parts, list | tuple) or (isinstance(files, type) and isinstance(parts, files))


class _Body:
    """The body of a response, each part of which is made within its request's call."""

    def __init__(self, parts: Iterable[bytes], block: call) -> None:
        self._parts = parts
        self._block = block
        self._rest: Iterator[bytes] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        with self._block:
            if self._rest is None:
                self._rest = iter(self._parts)
            return next(self._rest)

    def close(self) -> None:
        """The server has sent the body, or given it up."""
        close: Callable[[], object] | None = getattr(self._parts, "close", None)
        if close is not None:
            with self._block:
                close()
