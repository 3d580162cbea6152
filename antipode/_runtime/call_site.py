"""Who calls: the nearest frame that is the application's own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from .config import config, on_change

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from .config import Config

#: Packages that are no application: ours, clients, frameworks and servers.
_LIBRARIES = frozenset(
    """
    antipode antipode_shims redis pika aio_pika aiormq contextlib pymongo pymysql aiomysql MySQLdb
    psycopg psycopg_pool psycopg2 asyncpg
    sqlalchemy django asgiref flask werkzeug starlette fastapi anyio uvicorn gunicorn aiohttp celery
    kombu billiard grpc opentelemetry wrapt
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: Modules from which a framework calls what handles a request, a task or a command.
_HANDLERS = frozenset(
    """
    django.core.handlers.base django.core.management.base flask.app starlette.routing
    fastapi.routing aiohttp.web_app aiohttp.web_protocol celery.app.trace grpc._server
    """.split()  # noqa: SIM905 - as above
)
#: Modules that change schemas on behalf of a person or a deployment, and of no request.
_MIGRATIONS = ("django.core.management.commands.migrate", "django.db.migrations.", "alembic.")
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - as frames spell it
_INSTALLED_IN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: Frames of their own in some versions of Python, in others not.
_INNER = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})

_OWN: Final = 0
_INSTALLED: Final = 1
_LIBRARY: Final = 2
_HANDLER: Final = 3
_known: dict[str, int] = {}


def caller() -> FrameType:
    """The nearest caller that is the application's: outside of installed packages.

    An application may be installed as a package itself. ``app_packages`` names those that are its
    own. Without that it is the nearest installed caller that is no library, if the handler of a
    framework comes before any other code; or if there is no other code. Without any, the outermost.
    """
    frame: FrameType = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads files
    second: FrameType | None = None
    while True:
        kind = _known.get(frame.f_code.co_filename)
        if kind != _LIBRARY:
            if not kind:  # Unknown, or _OWN.
                kind = _kind(frame)
            if kind == _OWN:
                return frame
            if second is not None:
                if kind == _HANDLER:
                    return second
            elif kind == _INSTALLED:
                second = frame
        outer = frame.f_back
        if outer is None:
            return second or frame
        frame = outer


def own_frame(inner: FrameType, outermost: FrameType | None) -> FrameType | None:
    """The nearest frame from *inner* out to *outermost* that is surely the application's."""
    frame: FrameType | None = inner
    while frame is not None and _kind(frame) != _OWN:
        frame = None if frame is outermost else frame.f_back
    return frame


def call_site() -> str:
    """``file:line`` of :func:`caller`."""
    frame = caller()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def handling() -> str:
    """The module of a framework that calls from here what handles a request; empty for none."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads files
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module in _HANDLERS:
            return module
        frame = frame.f_back
    return ""


def is_migrating() -> bool:
    """Whether a migration of Django's or Alembic's calls."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads files
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_MIGRATIONS):
            return True
        frame = frame.f_back
    return False


def _kind(frame: FrameType) -> int:
    code = frame.f_code
    kind = _known.get(code.co_filename)
    if kind is None:
        kind = _known[code.co_filename] = _judged(code.co_filename, frame.f_globals)
    return _LIBRARY if kind == _OWN and code.co_name in _INNER else kind


def _judged(filename: str, names: Mapping[str, object]) -> int:
    module = str(names.get("__name__", ""))
    if any(f"{module}.".startswith(f"{package}.") for package in config().app_packages or ()):
        return _OWN
    if module in _HANDLERS:
        return _HANDLER
    if module.partition(".")[0] in _LIBRARIES:
        # The contract suite's tests are as good as a user's.
        return _OWN if module.startswith("antipode_testing.contract.suite") else _LIBRARY
    if any(folder in filename for folder in _INSTALLED_IN):
        return _INSTALLED
    standard = filename.startswith((_STANDARD, "<frozen "))
    return _LIBRARY if standard else _OWN


def _follow(held: Config | None, new: Config | None) -> None:
    """Judge files again, where other packages are the application's."""
    if held is not None and (new is None or new.app_packages != held.app_packages):
        _known.clear()


on_change(_follow)
