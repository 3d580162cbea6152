"""The file of one process: a part of a history (docs/spec/history.md)."""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

from antipode._runtime.metrics import logger

VERSION = 1
_encoded = json.JSONEncoder(separators=(",", ":")).encode


class Part:
    """Writes the lines of this process. Its caller locks.

    Attributes:
        name: of the process, which no other one has.
    """

    def __init__(self, directory: str) -> None:
        """Write into *directory*, which is made with the first line."""
        self._directory = Path(directory).absolute()
        self.start()

    def start(self) -> None:
        """Begin a file of this process, which another process did not begin."""
        self.name = secrets.token_hex(4)
        self._file, self._operations, self._over = -1, 0, False

    def put(self, line: dict[str, Any]) -> None:
        """Write one line, whole, before this returns.

        Never raises: what cannot be written is logged, and nothing is written after it.
        """
        if self._over:
            return
        try:
            if self._file < 0:
                self._open()
            self._write(line)
            self._operations += "process" in line
        except (OSError, ValueError) as error:
            self._over = True
            logger.warning("no more of the history in %s: %s", self._directory, error)

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = self._directory / f"{moment}-{os.getpid()}-{self.name}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._write({"kind": "history", "v": VERSION, "partial": True})

    def _write(self, line: dict[str, Any]) -> None:
        data = f"{_encoded(line)}\n".encode("utf-8", "backslashreplace")
        if os.write(self._file, data) != len(data):
            msg = "the line was written in part"
            raise OSError(msg)

    def close(self) -> None:
        """Write the last line and close the file. Idempotent."""
        if self._file >= 0:
            self.put({"kind": "end", "operations": self._operations})
            os.close(self._file)
        self._file, self._over = -1, True

    def after_fork(self) -> None:
        """Begin a file of the child's own; the parent goes on with its."""
        file, over = self._file, self._over
        self.start()
        self._over = over
        if file >= 0:
            os.close(file)
