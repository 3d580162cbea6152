"""Who calls: the nearest frame that is the application's own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

_LIBRARIES = frozenset(
    """
    antipode antipode_shims redis pika aio_pika aiormq contextlib pymongo pymysql aiomysql MySQLdb
    sqlalchemy
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - as frames spell it
_INSTALLED_IN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: Frames of their own in some versions of Python, in others not.
_INNER = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})

_OWN: Final = 0
_INSTALLED: Final = 1
_LIBRARY: Final = 2
_known: dict[str, int] = {}


def caller() -> FrameType:
    """The nearest caller outside of libraries.

    Where all are installed packages, as an application that was deployed as one, the nearest that
    is neither ours, nor a client's, nor Python's; without any, the outermost.
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
            if kind == _INSTALLED and second is None:
                second = frame
        outer = frame.f_back
        if outer is None:
            return second or frame
        frame = outer


def call_site() -> str:
    """``file:line`` of :func:`caller`."""
    frame = caller()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _kind(frame: FrameType) -> int:
    code = frame.f_code
    kind = _known.get(code.co_filename)
    if kind is None:
        kind = _known[code.co_filename] = _judged(code.co_filename, frame.f_globals)
    return _LIBRARY if kind == _OWN and code.co_name in _INNER else kind


def _judged(filename: str, names: Mapping[str, object]) -> int:
    module = str(names.get("__name__", ""))
    if module.partition(".")[0] in _LIBRARIES:
        # The contract suite's tests are as good as a user's.
        return _OWN if module.startswith("antipode.testing._contract") else _LIBRARY
    if any(folder in filename for folder in _INSTALLED_IN):
        return _INSTALLED
    standard = filename.startswith((_STANDARD, "<frozen "))
    return _LIBRARY if standard else _OWN
