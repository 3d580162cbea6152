"""Which functions a call calls, and how often: the same each time, or it is no count."""

from __future__ import annotations

import gc
import re
import sys
import sysconfig
from collections import Counter
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.budgets._file import Counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
#: What comes before the part of a path that says something.
FOLDERS = (
    f"{sysconfig.get_path('purelib')}/",
    f"{sysconfig.get_path('stdlib')}/",
    f"{ROOT / 'shims'}/",
    f"{ROOT}/",
)
#: An event loop's turns are as many as packets arrive one by one. They are not counted, nor what
#: they call that is not Python's.
LOOP = re.compile(r"/(asyncio/(base_events|events|selector_events)|selectors|psycopg/waiting)\.py$")
#: Nor what waits for two replies of psycopg's, which come together or one by one.
FLIGHT = re.compile(r"/psycopg_sample\.py$")
#: After so many calls all caches are filled.
WARM = 30
#: What came to the same so often is the count. On a busy machine bytes may arrive in pieces, or
#: before they are waited for: then a call calls more or less, and such calls do not come so often.
ALIKE = 15
#: What comes less often than that is no count. Of others the largest is: a call whose reply was
#: there before it was waited for calls less.
SELDOM = 5
MOST = 200

#: By function: Python's as ``file:name``, others as ``C name``.
Calls = Counter[str]


def steady_calls(
    call: Callable[[], object], within: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Calls:
    """What one call of *call* calls in this thread, once everything is warm.

    Args:
        call: what is counted.
        within: makes the block around each call, which is not counted.

    Raises:
        AssertionError: no fifteen calls came to the same.
    """
    for _ in range(WARM):
        with within():
            call()
    came: Counter[frozenset[tuple[str, int]]] = Counter()
    with _no_garbage():
        for _ in range(MOST):
            with within():
                calls = frozenset(_calls(call).items())
            came[calls] += 1
            if came[calls] == ALIKE:
                often = [each for each, times in came.items() if times > SELDOM]
                return Calls(dict(max(often, key=lambda each: sum(count for _, count in each))))
    raise AssertionError(f"{MOST} calls came to {len(came)} different counts")


def difference(
    line: str,
    ours: Calls,
    plain: Calls,
    packages: Collection[str] = (),
    others: Mapping[str, int] | None = None,
) -> Counted:
    """What the library adds to one call.

    Args:
        line: names the client and the call.
        ours: what is called with the library.
        plain: what is called without it.
        packages: whose releases decide what is called, beside OpenTelemetry's.
        others: what was counted besides.
    """
    more = Calls(ours)
    more.subtract(plain)
    functions = {name: count for name, count in more.items() if count}
    in_c = sum(count for name, count in functions.items() if name.startswith("C "))
    counts = {"calls": sum(functions.values()) - in_c, "c_calls": in_c, **(others or {})}
    releases = {name: version(name) for name in (*packages, "opentelemetry-api")}
    return Counted(line, counts, releases, functions)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Nothing is collected meanwhile: what a collection calls belongs to no call."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def uncounted() -> Iterator[None]:
    """A part of a call that waits for another thread, which takes more calls or fewer."""
    before = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(before)


def _calls(call: Callable[[], object]) -> Calls:
    """What one call calls, itself included."""
    seen: Counter[Any] = Counter()

    def note(frame: FrameType, event: str, function: Any) -> None:
        code = frame.f_code
        if LOOP.search(code.co_filename):
            return
        if code.co_name in ("drive", "land") and FLIGHT.search(code.co_filename):
            return
        if event == "call":
            seen[frame.f_code] += 1
        elif event == "c_call":
            seen[_name_of_c(function)] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    calls = Calls()
    for what, count in seen.items():
        calls[what if isinstance(what, str) else _name(what)] += count
    return calls


def _name(code: Any) -> str:
    """A function by its file and its name there."""
    file = code.co_filename
    for folder in FOLDERS:
        file = file.removeprefix(folder)
    # 3.10 knows no name with its class.
    return f"{file}:{getattr(code, 'co_qualname', code.co_name)}"


def _name_of_c(function: Any) -> str:
    """A function that is not Python's, by its module or class and its name."""
    owner = "" if "." in function.__qualname__ else f"{function.__module__ or 'builtins'}."
    return f"C {owner}{function.__qualname__}"
