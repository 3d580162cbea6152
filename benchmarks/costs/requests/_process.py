"""One side of a case, in a process of its own: ``python -m`` this module. It ends with its input.

A server prints its port. A client is told how many calls to make, and prints what they took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ._cases import case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks._processors import Processors


class Client:
    """A process that calls one server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, number: int) -> tuple[list[float], int]:
        """Microseconds of the calls that went well, of so many, and how many did not."""
        said = _ask(self._process, f"{number}\n")
        return said["us"], said["failed"]


@contextmanager
def side(name: str, processors: Processors, *, antipode: bool) -> Iterator[Client]:
    """A server and its client.

    Raises:
        RuntimeError: one of them ended.
    """
    with ExitStack() as stack:
        with processors.for_servers():
            server = stack.enter_context(_running(name, antipode=antipode, port=0))
        with processors.for_clients():
            port = _ask(server)
            client = stack.enter_context(_running(name, antipode=antipode, port=port))
        yield Client(client)


@contextmanager
def _running(name: str, *, antipode: bool, port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", __name__, name, str(int(antipode)), str(port)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.close()
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _ask(process: subprocess.Popen[str], line: str = "") -> Any:  # noqa: ANN401 - JSON
    assert process.stdin and process.stdout  # noqa: S101, PT018 - they are pipes
    with suppress(BrokenPipeError):
        process.stdin.write(line)
    said = process.stdout.readline()
    if not said:
        msg = f"{process.args!r} ended"
        raise RuntimeError(msg)
    return json.loads(said)


def _say(what: Any) -> None:  # noqa: ANN401 - JSON
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def _serve(name: str, *, antipode: bool) -> None:
    with case(name).serve(antipode=antipode) as port:
        _say(port)
        sys.stdin.read()


def _call(name: str, port: int, *, antipode: bool) -> None:
    told = False
    with case(name).calling(port, antipode=antipode) as call:
        for line in sys.stdin:
            times: list[float] = []
            failed = 0
            for _ in range(int(line)):
                began_ns = time.perf_counter_ns()
                try:
                    call()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                    failed += 1
                    if not told:
                        print(f"{name}: {error!r}", file=sys.stderr)
                        told = True
                else:
                    times.append((time.perf_counter_ns() - began_ns) / 1000)
            _say({"us": times, "failed": failed})


def _main(name: str, antipode: str, port: str) -> None:
    if port == "0":
        _serve(name, antipode=antipode == "1")
    else:
        _call(name, int(port), antipode=antipode == "1")


if __name__ == "__main__":
    _main(*sys.argv[1:])
