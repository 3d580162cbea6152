"""``python -m antipode_shims.embedded SOURCE TARGET``: the replicator as a process.

It takes commands on standard input, one a line, and answers each with ``ok`` or ``error ...``:
``lag MS``, ``pause``, ``resume``, ``cut``, ``heal``, ``reseed``, ``catch_up``, ``promote`` and
``promote keep`` (with what was still on its way). It ends at the end of input, so that it does not
outlive who started it, and at SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from typing import TYPE_CHECKING

from antipode import AntipodeError, ConfigurationError

from ._store.replicator import Replicator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SIGNALS_SEEN_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Replicate until the end of input; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m antipode_shims.embedded",
        description="Replicate one region's file of an embedded store to another region's.",
        epilog="Commands on standard input: lag MS, pause, resume, cut, heal, reseed, catch_up, "
        "promote, promote keep. It ends at the end of input.",
    )
    parser.add_argument("source", help="the primary's file; it may be created later")
    parser.add_argument("target", help="the replica's file, created where it is missing")
    parser.add_argument(
        "--lag-ms", type=float, default=0.0, help="from a commit until the replica shows it"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Replicator(options.source, options.target, lag_ms=options.lag_ms) as replicator:
            _answer("ok")
            for line in _lines(sys.stdin.fileno()):
                _answer(_obey(replicator, line.split()))
    except AntipodeError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _lines(descriptor: int) -> Iterator[str]:
    """The lines of a file until its end.

    A signal that comes just before a blocking read is not seen until the read returns, so this
    one never blocks for long.
    """
    rest = b""
    while True:
        if not select.select([descriptor], [], [], _SIGNALS_SEEN_S)[0]:
            continue
        chunk = os.read(descriptor, 4096)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        if not chunk:
            if rest:
                yield rest.decode(errors="replace")
            return


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _obey(replicator: Replicator, words: list[str]) -> str:
    """Carry out one command; the answer."""
    commands: dict[str, Callable[[], object]] = {
        "pause": replicator.pause,
        "resume": replicator.resume,
        "cut": replicator.cut,
        "heal": replicator.heal,
        "reseed": replicator.reseed,
        "catch_up": replicator.catch_up,
        "promote": replicator.promote,
        "promote keep": lambda: replicator.promote(lose_unreplicated=False),
    }
    try:
        if words[:1] == ["lag"]:
            replicator.set_lag(_milliseconds(words))
        elif (command := commands.get(" ".join(words))) is not None:
            command()
        else:
            return f"error no command {' '.join(words)!r}: lag MS, {', '.join(commands)}"
    except AntipodeError as error:
        return f"error {error}"
    return "ok"


def _milliseconds(words: list[str]) -> float:
    try:
        (_, number) = words
        return float(number)
    except ValueError:
        msg = f"lag takes one number of milliseconds, not {' '.join(words[1:])!r}"
        raise ConfigurationError(msg) from None


if __name__ == "__main__":
    sys.exit(main())
