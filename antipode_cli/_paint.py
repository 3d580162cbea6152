"""Styled lines onto a stream: by rich where it is installed, plain everywhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from .report import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from .report import Line


_PIECE = 1 << 16


def write(lines: Iterable[Line], stream: TextIO) -> None:
    """Write *lines*; coloured on a terminal alone, unless NO_COLOR is set."""
    console = None if os.environ.get("NO_COLOR") else _console(stream)
    if console is None:
        stream.writelines(plain([line]) for line in lines)
        return
    from rich.text import Text

    for line in lines:
        console.print(Text.assemble(*line))


def put(text: str, stream: TextIO) -> None:
    """Write *text* piece by piece: an unbuffered stream does not report what it left out."""
    stream.writelines(text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def _console(stream: TextIO) -> Console | None:
    """A console on *stream*; None where that is no terminal, or rich is not installed."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(file=stream, soft_wrap=True, highlight=False)
    return console if console.is_terminal else None
