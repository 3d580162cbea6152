"""The records of a dry run: JSON lines, in a file of each process (docs/spec/dry-run.md)."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode._lineage.write_id import Promise
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode._lineage.write_id import Dependency

VERSION = 1
#: The number of a record that was not written.
UNWRITTEN = -1
#: What stands for a log where records name a promise.
PROMISES = "promise"

#: A value as JSON, without blanks.
encoded = json.JSONEncoder(separators=(",", ":")).encode
#: A string as JSON.
text = encode_basestring_ascii


def members(fields: Mapping[str, Any]) -> str:
    """*fields* as the members of a JSON object, without its braces."""
    return encoded(fields)[1:-1]


def named(found: Dependency) -> tuple[str, str, str]:
    """The datastore, the log and the version of *found*, as records name them."""
    if isinstance(found, Promise):
        return found.datastore, PROMISES, found.id
    return found.datastore, found.key, str(found.version)


def write_text(named: tuple[str, str, str]) -> str:
    """A write as JSON, from its names."""
    datastore, log, version = map(text, named)
    return f'{{"datastore":{datastore},"log":{log},"version":{version}}}'


def writes_text(found: Collection[Dependency]) -> str:
    """*found* as a JSON list, in an order that depends on nothing else."""
    if len(found) == 1:
        (only,) = found
        return f"[{write_text(named(only))}]"
    return f"[{','.join(map(write_text, sorted(set(map(named, found)))))}]"


class Records:
    """The file of this process. Thread-safe; a child process gets a file of its own."""

    def __init__(self, directory: str, region: str | None) -> None:
        """Write into *directory*, which is made with the first record."""
        self._directory = Path(directory).absolute()
        self._region = region
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._process = secrets.token_hex(6)
        self._file = UNWRITTEN
        self._next = 0
        self._over = False

    def put(self, kind: str, about: str) -> int:
        """Write one record, whole, before this returns; its number, or :data:`UNWRITTEN`.

        Never raises: what cannot be written is counted, and logged once.

        Args:
            kind: of the record.
            about: its own fields, as :func:`members`.
        """
        with self._lock:
            if self._over:
                return UNWRITTEN
            try:
                if self._file < 0:
                    self._open()
                return self._write(kind, about)
            except (OSError, ValueError) as error:
                self._over = True
                failure = error
        count("dry_run_unwritten")
        message = "no more records of the dry run in %s: %s"
        log_once("dry_run_unwritten", "", "", message, self._directory, failure)
        return UNWRITTEN

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = self._directory / f"{moment}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        version = sys.version_info
        facts = {
            "service": os.environ.get("OTEL_SERVICE_NAME") or _program(),
            "region": self._region,
            "pid": os.getpid(),
            "language": "python",
            "language_version": f"{version.major}.{version.minor}.{version.micro}",
        }
        self._write("process", members(facts))

    def _write(self, kind: str, about: str) -> int:
        number = self._next
        head = f'"v":{VERSION},"kind":"{kind}","t":{time.time():.6f}'
        line = f'{{{head},"process":"{self._process}","n":{number},{about}}}\n'
        data = line.encode()
        if os.write(self._file, data) != len(data):
            msg = "the line was written in part"
            raise OSError(msg)
        self._next += 1
        return number

    def close(self) -> None:
        """Close the file; nothing is written any more. Idempotent."""
        with self._lock:
            self._over = True
            if self._file >= 0:
                os.close(self._file)
                self._file = UNWRITTEN

    def after_fork(self) -> None:
        """Start a file of the child's own; the parent goes on with its."""
        file, over = self._file, self._over
        self._start()
        self._over = over
        if file >= 0:
            os.close(file)


def _program() -> str:
    """The name of the program that runs."""
    started = Path(sys.argv[0] if sys.argv else "")
    if started.name == "__main__.py":
        return started.parent.name
    return started.name if started.name not in ("", "-c", "-m") else "python"
