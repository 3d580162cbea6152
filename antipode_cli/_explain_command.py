"""``antipode explain``: a lineage for a person."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from antipode import Lineage, LineageDecodeError
from antipode.propagation import RESPONSE_HEADER, members
from antipode.shim import decode

from ._exits import CLEAN, UsageError
from ._explain import explanation
from ._paint import write
from .report import Span

if TYPE_CHECKING:
    import argparse

HELP = "show what is in a lineage"
DESCRIPTION = """\
Show a lineage for a person: its entries, when they were written, what is missing and why. VALUE is
a lineage's text as it stands in a message or with a value, a whole baggage header, or the header
of a response; `-` reads it from standard input."""
_HEADERS = ("baggage", RESPONSE_HEADER)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument("value", metavar="VALUE", help="the text or header; - for standard input")


def run(given: argparse.Namespace) -> int:
    """Run the command and return its exit status.

    Raises:
        UsageError: the value is no lineage.
    """
    value: str = sys.stdin.read() if given.value == "-" else given.value
    texts = _texts(value)
    lineage = Lineage().merge(*map(_decoded, texts))
    if len(texts) > 1:
        write([(Span(f"{len(texts)} members, merged as a service would"),)], sys.stdout)
    write(explanation(lineage, sum(map(len, texts))), sys.stdout)
    return CLEAN


def _texts(value: str) -> tuple[str, ...]:
    """The lineages' texts in what somebody copied from somewhere.

    Raises:
        UsageError: there is none in it.
    """
    text = value.strip()
    name, colon, rest = text.partition(":")
    header = name.strip().lower() if colon and name.strip().lower() in _HEADERS else ""
    if header:
        text = rest.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if not text:
        msg = "the value is empty; a lineage without anything in it is the text `1`"
        raise UsageError(msg)
    if header == "baggage" or "=" in text:
        found = members([text])
        if not found:
            msg = "this baggage header has no member named antipode: no lineage travelled with it"
            raise UsageError(msg)
        return found
    return (text,)


def _decoded(text: str) -> Lineage:
    try:
        return decode(text)
    except LineageDecodeError as error:
        start = max(0, error.offset - 20)
        shown = text[start : error.offset + 20]
        mark = " " * (error.offset - start) + "^"
        printable = "".join(
            letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown
        )
        msg = (
            f"this is no lineage: {error} ({error.code}, at character {error.offset + 1} of "
            f"{len(text)})\n  {printable}\n  {mark}"
        )
        raise UsageError(msg) from None
