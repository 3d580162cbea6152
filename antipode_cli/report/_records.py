"""The records of a dry run, read from the files of any number of processes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import AntipodeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: The version of docs/spec/dry-run.md that is read here.
VERSION = 1
SUFFIX = ".jsonl"
#: Larger than any time in seconds.
_MOST = 1e12
#: What no format shows as it is: commands to terminals, and what UTF-8 or XML cannot hold.
_UNSHOWN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")


class RecordsError(AntipodeError):
    """Files are no records of a dry run, or there are none."""

    code = "records"


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place in a source file; all empty where it is not known."""

    file: str = ""
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        """``file:line in function``."""
        if not self.file:
            return "an unknown place"
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One write as records name it."""

    datastore: str
    log: str
    version: str

    def __str__(self) -> str:
        """As :class:`antipode.WriteId`."""
        return f"{self.datastore}:{self.log}@{self.version}"


@dataclass(frozen=True, slots=True)
class Process:
    """Who wrote a file."""

    id: str
    service: str = ""
    region: str = ""
    pid: int = 0
    language: str = ""

    @property
    def name(self) -> str:
        """The service and its region, for a person."""
        service = self.service or f"process {self.id}"
        return f"{service} ({self.region})" if self.region else service


@dataclass(frozen=True, slots=True)
class Record:
    """One line; what its kind does not have is empty.

    Attributes:
        writes: of a ``write`` the one it is about, of a ``barrier`` its guards, of a ``read`` the
            entries that the verdict is about.
        reads: how many reads in a row a ``read`` is about.
        step: of a ``message``: whether it was ``sent`` or ``handled``.
        to: of a ``message`` the task or the datastore, of a ``call`` the service.
        destination: of a ``message`` in a datastore, its queue, topic or exchange.
        entry: of a ``rule``, without its options.
        matched: of a ``rule``: whether its process made a client by it.
        database: of a ``rule``; None for all that are at its address.
    """

    kind: str
    t: float
    process: str
    n: int
    request: str | None = None
    test: str | None = None
    site: Site = Site()
    writes: tuple[Entry, ...] = ()
    datastore: str = ""
    verdict: str = ""
    reads: int = 1
    at: str = ""
    dry: bool = False
    opened: str = ""
    of: int = -1
    confirmed: bool | None = None
    waited_s: float | None = None
    lint: str = ""
    detail: str = ""
    step: str = ""
    to: str = ""
    destination: str = ""
    entry: str = ""
    matched: bool = False
    database: str | None = None

    @property
    def order(self) -> tuple[float, str, int]:
        """Sorts records of all processes by time, those of one process as they were written."""
        return self.t, self.process, self.n


@dataclass(frozen=True, slots=True)
class Records:
    """What all files say together.

    Attributes:
        processes: by id.
        lines: of all processes, each process's in its own order.
        files: how many were read.
        truncated: files whose last line is cut off.
    """

    processes: dict[str, Process]
    lines: tuple[Record, ...]
    files: int = 0
    truncated: tuple[str, ...] = ()

    def process(self, line: Record) -> Process:
        """Who wrote *line*."""
        return self.processes.get(line.process) or Process(line.process)


def load(paths: Iterable[Path]) -> Records:
    """The records of *paths*: files, and folders with all ``.jsonl`` files below them.

    A line that occurs in several files, as in a copy, counts once. A last line that is cut off
    is left out: its process crashed, or still writes.

    Raises:
        RecordsError: a file is missing, unreadable or no record file, or there is none at all.
    """
    files = _files(paths)
    processes: dict[str, Process] = {}
    lines: dict[tuple[str, int], Record] = {}
    truncated: list[str] = []
    for path in files:
        objects, whole = _objects(path)
        if not whole:
            truncated.append(str(path))
        for number, data in enumerate(objects, start=1):
            try:
                line = _record(data)
                if line.kind == "process":
                    processes[line.process] = _process(line.process, data)
            except (KeyError, TypeError, ValueError) as error:
                raise _refused(path, number, error) from None
            lines.setdefault((line.process, line.n), line)
    ordered = sorted(lines.values(), key=lambda line: (line.process, line.n))
    return Records(processes, tuple(ordered), len(files), tuple(truncated))


def _files(paths: Iterable[Path]) -> list[Path]:
    found: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob(f"*{SUFFIX}"))
            if not inside:
                msg = (
                    f"{path} has no {SUFFIX} file in it: did the processes run with "
                    "ANTIPODE_MODE=dry-run and ANTIPODE_DRY_RUN_DIR?"
                )
                raise RecordsError(msg)
            found.update((one.resolve(), one) for one in inside)
        else:
            found[path.resolve()] = path
    return list(found.values())


def _objects(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The objects of all whole lines, and whether the last line is one."""
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        msg = f"cannot read {path}: {error.strerror or error}"
        raise RecordsError(msg) from None
    *whole, rest = text.split("\n")
    objects: list[dict[str, Any]] = []
    for number, line in enumerate(whole, start=1):
        data = _object(line)
        if data is None:
            raise _refused(path, number, ValueError("it is no JSON object"))
        objects.append(data)
    if not rest:
        return objects, True
    # Without its line feed it may still be whole: some editors take the last one away.
    if (last := _object(rest)) is not None:
        return [*objects, last], True
    if not objects and not rest.startswith('{"'):
        raise _refused(path, 1, ValueError("it is no JSON object"))
    return objects, False


def _object(line: str) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _refused(path: Path, number: int, error: Exception) -> RecordsError:
    why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    return RecordsError(f"{path}:{number} is no record of a dry run: {why}")


def _process(name: str, data: dict[str, Any]) -> Process:
    service, region = data.get("service"), data.get("region")
    language = _optional(data.get("language"))
    return Process(
        name,
        _optional(service) or "",
        _optional(region) or "",
        _whole(data["pid"]),
        language or "",
    )


def _record(data: dict[str, Any]) -> Record:
    if data["v"] != VERSION:
        msg = f"its version is {data['v']!r}, and this program reads version {VERSION}"
        raise ValueError(msg)
    kind = _text(data["kind"])
    return Record(
        kind,
        _number(data["t"]),
        _text(data["process"]),
        _whole(data["n"]),
        _optional(data.get("request")),
        _optional(data.get("test")),
        _site(data.get("site")),
        _entries(kind, data),
        **_rest(kind, data),
    )


def _rest(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """The fields that one kind alone has. A kind of later versions has none."""
    if kind == "read":
        if data["verdict"] not in ("guarded", "unguarded", "automatic"):
            msg = f"its verdict is {data['verdict']!r}"
            raise ValueError(msg)
        return {
            "datastore": _text(data["datastore"]),
            "verdict": data["verdict"],
            "reads": _count(data.get("reads", 1)),
        }
    if kind == "barrier":
        return {"at": _text(data["at"]), "dry": bool(data["dry"])}
    if kind == "scope":
        return {"opened": _text(data["opened"])}
    if kind == "evidence":
        waited = data["waited_s"]
        return {
            "of": _whole(data["of"]),
            "confirmed": data["confirmed"],
            "waited_s": None if waited is None else _number(waited),
        }
    if kind == "lint":
        return {
            "lint": _text(data["lint"]),
            "datastore": _optional(data.get("datastore")) or "",
            "detail": _optional(data.get("detail")) or "",
        }
    texts = {"message": ("step", "to"), "call": ("to",), "rule": ("datastore", "entry")}
    found: dict[str, Any] = {name: _text(data[name]) for name in texts.get(kind, ())}
    if kind == "rule":
        found["matched"] = _boolean(data["matched"])
        found["database"] = _optional(data["database"])
    if kind == "message":
        found["destination"] = _optional(data.get("destination")) or ""
    return found


def _entries(kind: str, data: dict[str, Any]) -> tuple[Entry, ...]:
    listed: list[Any] = []
    if kind == "write":
        listed = [data["write"]]
    elif kind == "barrier":
        listed = data["guards"]
    elif kind == "read":
        listed = data["writes"]
    return tuple(
        Entry(_text(one["datastore"]), _text(one["log"]), _text(one["version"])) for one in listed
    )


def _site(data: dict[str, Any] | None) -> Site:
    if data is None:
        return Site()
    return Site(_text(data["file"]), _whole(data["line"]), _text(data["function"]))


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or not abs(value) < _MOST:
        msg = f"{value!r} is no number of seconds"
        raise TypeError(msg)
    return float(value)


def _whole(value: object) -> int:
    if not isinstance(value, int):
        msg = f"{value!r} is no whole number"
        raise TypeError(msg)
    return value


def _count(value: object) -> int:
    if (count := _whole(value)) < 1:
        msg = f"{value!r} is no number of reads"
        raise ValueError(msg)
    return count


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        msg = f"{value!r} is neither true nor false"
        raise TypeError(msg)
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"{value!r} is no text"
        raise TypeError(msg)
    return shown(value)


def shown(text: str) -> str:
    """*text* as any format can show it."""
    return text if text.isprintable() else _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)
