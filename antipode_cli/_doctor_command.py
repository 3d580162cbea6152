"""``antipode doctor``: whether a process is set up so that lineages travel and barriers wait."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
import threading
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from antipode.diagnostics import noting_clients

from ._doctor import Verdict, examine
from ._exits import CLEAN, FINDINGS, UsageError
from ._paint import write
from .report import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from ._doctor import Check
    from .report import Line

HELP = "check how a process is set up"
DESCRIPTION = """\
Check, inside a process of your application, whether lineages travel, whether incoming requests get
a scope, which datastores are registered, and whether the replicas answer and are one server each.
What cannot be known from here is said to be so. Exit status 1 where something is wrong."""
_MAIN = threading.main_thread()
_STYLES = {Verdict.OK: "green", Verdict.PROBLEM: "bold red", Verdict.UNKNOWN: "yellow"}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument(
        "--app",
        metavar="MODULE[:NAME]",
        help="import this module first, from the working directory too; a function NAME that "
        "needs no arguments is called, of an application object the middleware is examined; the "
        "settings of a Django project set it up",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="the longest that one connection to a datastore may take; default: 2",
    )


def run(given: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises:
        UsageError: the application cannot be imported.
    """
    for point in entry_points(group="antipode_shims"):
        point.load()
    with noting_clients():
        objects = _import(given.app) if given.app else []
        found = examine(imported=bool(given.app), timeout_s=given.timeout, objects=objects)
        checks = list(found)
    write(_lines(checks), sys.stdout)
    status = FINDINGS if any(check.verdict is Verdict.PROBLEM for check in checks) else CLEAN
    if given.app and any(not one.daemon for one in threading.enumerate() if one is not _MAIN):
        # Threads of the application would keep this process alive for ever.
        sys.stdout.flush()
        os._exit(status)
    return status


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        msg = f"{text!r} is no positive number of seconds"
        raise argparse.ArgumentTypeError(msg)
    return seconds


def _lines(checks: list[Check]) -> Iterator[Line]:
    width = max(len(check.subject) for check in checks)
    for check in checks:
        yield (
            Span(f"{check.verdict.value:11} ", _STYLES[check.verdict]),
            Span(f"{check.subject:{width}}  ", "bold"),
            Span(check.said),
        )
        if check.todo:
            yield Span(f"{'':11} {'':{width}}  to do: "), Span(check.todo)


def _import(app: str) -> list[tuple[str, object]]:
    """Import the application as ``python -m`` would, and run what sets it up.

    Returns:
        What was named, what the function that was named returned, and what its module holds: where
        each stands, and itself.

    Raises:
        UsageError: that fails.
    """
    name, _, attribute = app.partition(":")
    if not name or app.endswith(":"):
        msg = f"--app must be like package.module or package.module:function, not {app!r}"
        raise UsageError(msg)
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds texts
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as above
    try:
        module = importlib.import_module(name)
        _set_up_django(module)
        target: object = module
        for part in filter(None, attribute.split(".")):
            target = getattr(target, part)
        made = _call(app, target) if attribute and inspect.isroutine(target) else None
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        msg = f"cannot set up {app}: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    held = [(f"{name}:{key}", value) for key, value in vars(module).items()]
    return [(app, target), (f"{app}()", made), *held] if attribute else held


def _set_up_django(module: ModuleType) -> None:
    """Where *module* is the settings of a Django project, set the project up as manage.py does."""
    if not hasattr(module, "INSTALLED_APPS"):
        return
    import django
    from django.core.handlers import wsgi  # So that the project counts as one that serves.

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module.__name__)
    django.setup()
    wsgi.WSGIHandler()  # Loads the middleware, as the server will.


def _call(app: str, target: object) -> object:
    """Call a function that sets the application up; an application itself is left alone."""
    if not callable(target):
        return None
    try:
        inspect.signature(target).bind()
    except (TypeError, ValueError):
        return None  # It takes a request: an application in the shape of a function.
    if inspect.iscoroutinefunction(target):
        msg = f"{app} is asynchronous: name a function that sets the application up without a loop"
        raise UsageError(msg)
    made: object = target()
    return made
