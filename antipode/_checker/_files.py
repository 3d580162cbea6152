"""Histories in files: JSON lines, each part with a first and a last line of its own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._history import READ, RECEIVE, SEND, WRITE, History, HistoryError, Operation
from ._limits import EVERY, Meter
from ._partial import known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._history import Progress

#: The version of docs/spec/history.md that is read here.
VERSION = 1
SUFFIX = ".jsonl"
_SITE = re.compile(r"(.+):(\d+) in (.+)")
_KINDS = frozenset((WRITE, READ, SEND, RECEIVE))


class _LineError(ValueError):
    """Why a line is refused."""


def load(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    memory_limit_mib: int | None = None,
    progress: Progress | None = None,
) -> History:
    """The history in *paths*: files, and folders with all ``.jsonl`` files below them.

    Each file is a part of one history. The operations of a process are in one part.

    Args:
        paths: where to read: one path or several.
        memory_limit_mib: how much memory this process may have, in MiB; None for any.
        progress: hears how many operations were read.

    Raises:
        HistoryError: a part cannot be read, is malformed, cut off or contradicts another; the
            message begins with the file and the line.
        ExhaustedError: the memory limit is reached.
    """
    parts = _Parts(Meter(memory_limit_mib=memory_limit_mib, progress=progress))
    for path in _files(paths):
        parts.read(path)
    if not parts.partial:
        return History(tuple(parts.operations), parts.initial)
    kept = tuple(known(parts.operations, parts.initial, parts.vanishing))
    return History(kept, parts.initial, len(parts.operations) - len(kept))


def save(history: History, path: str | os.PathLike[str]) -> None:
    """Write *history* as one part, to the file *path*.

    Raises:
        OSError: it cannot be written.
    """
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in _lines(history))


def _lines(history: History) -> Iterator[dict[str, Any]]:
    yield {"kind": "history", "v": VERSION}
    for (datastore, key), version in history.initial.items():
        yield {"kind": "initial", "datastore": datastore, "key": key, "version": version}
    for one in history.operations:
        line = {"kind": one.kind, "process": one.process, "lineage": one.lineage}
        if one.kind in (SEND, RECEIVE):
            line["message"] = one.message
        else:
            line |= {"datastore": one.datastore, "key": one.key, "version": one.version}
        if site := _SITE.fullmatch(one.site):
            file, number, function = site.groups()
            yield {**line, "site": {"file": file, "line": int(number), "function": function}}
        else:
            yield line
    yield {"kind": "end", "operations": len(history.operations)}


def _files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[Path]:
    found: dict[Path, Path] = {}
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    for path in map(Path, given):
        inside = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside:
            raise HistoryError(f"{path} has no {SUFFIX} file in it")
        found.update((one.resolve(), one) for one in inside)
    return list(found.values())


class _Parts:
    """What was read so far."""

    def __init__(self, meter: Meter) -> None:
        self.operations: list[Operation] = []
        self.initial: dict[tuple[str, str], str] = {}
        self.vanishing: set[tuple[str, str]] = set()
        self.partial = False
        self._meter = meter
        self._home: dict[str, Path] = {}
        self._path: Path
        self._before, self._ended, self._endless = 0, False, False
        # Equal texts of a million lines are one text.
        self._texts: dict[str, str] = {}

    def read(self, path: Path) -> None:
        self._path = path
        self._before, self._ended, self._endless = len(self.operations), False, False
        number = 0
        try:
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if self._endless and not line.endswith(b"\n"):
                        break  # Its process was killed, or still writes it.
                    self._line(_object(line), number)
        except _LineError as error:
            raise HistoryError(f"{path}:{number}: {error}") from None
        except OSError as error:
            raise HistoryError(f"cannot read {path}: {error.strerror or error}") from None
        if not (self._ended or self._endless):
            why = "the history is cut off: its last line is not of kind 'end'"
            raise HistoryError(f"{path}:{number}: {why}")

    def _line(self, data: dict[str, Any], number: int) -> None:
        kind = data.get("kind")
        if self._ended:
            raise _LineError("it follows the line of kind 'end'")
        if number == 1:
            _first(data)
            self._endless = data.get("partial") is True
            self.partial |= self._endless
        elif kind == "end":
            _last(data, len(self.operations) - self._before)
            self._ended = True
        elif kind == "initial":
            subject = self._text(data, "datastore"), self._text(data, "key")
            if subject in self.initial:
                raise _LineError(f"{':'.join(subject)} has an initial version already")
            self.initial[subject] = self._text(data, "version")
        elif kind == "vanishes":
            self.vanishing.add((self._text(data, "datastore"), self._text(data, "key")))
        elif kind in _KINDS:
            self._add(self._operation(str(kind), data, f"{self._path}:{number}"))
        else:
            raise _LineError(f"its kind is {kind!r}")

    def _add(self, one: Operation) -> None:
        if (home := self._home.setdefault(one.process, self._path)) is not self._path:
            why = f"process {one.process!r} has operations in {home} too: who was first?"
            raise _LineError(why)
        self.operations.append(one)
        if not len(self.operations) % EVERY:
            self._meter.passed("operations read", len(self.operations), 0)

    def _operation(self, kind: str, data: dict[str, Any], where: str) -> Operation:
        lineage = None if data.get("lineage") is None else self._text(data, "lineage")
        start = (kind, self._text(data, "process"), lineage)
        site = "" if data.get("site") is None else self._site(data["site"])
        if kind in (SEND, RECEIVE):
            message = self._text(data, "message")
            return Operation(*start, message=message, site=site, where=where)
        datastore, key = self._text(data, "datastore"), self._text(data, "key")
        nothing = kind == READ and data.get("version", "") is None
        version = None if nothing else self._text(data, "version")
        return Operation(*start, datastore, key, version, site=site, where=where)

    def _text(self, data: dict[str, Any], name: str) -> str:
        value = data.get(name)
        if not isinstance(value, str) or not value:
            if name not in data:
                raise _LineError(f"it has no {name!r}")
            raise _LineError(f"its {name!r} is {value!r}, not a text of at least one character")
        return self._texts.setdefault(value, value)

    def _site(self, value: object) -> str:
        if not isinstance(value, dict) or not isinstance(value.get("line"), int):
            raise _LineError("its 'site' needs a 'file', a 'line' and a 'function'")
        site = f"{self._text(value, 'file')}:{value['line']} in {self._text(value, 'function')}"
        return self._texts.setdefault(site, site)


def _object(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise _LineError("the line is cut off: it has no line feed")
    try:
        data = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, _LineError):
            raise
        raise _LineError("it is no JSON") from None
    if not isinstance(data, dict):
        raise _LineError("it is no JSON object")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise _LineError("it has a name twice")
    return data


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _first(data: dict[str, Any]) -> None:
    if data.get("kind") != "history":
        raise _LineError("the first line of a history is of kind 'history'")
    if data.get("v") != VERSION:
        raise _LineError(
            f"its version is {data.get('v')!r}, and this program reads version {VERSION}"
        )


def _last(data: dict[str, Any], operations: int) -> None:
    if data.get("operations") != operations:
        raise _LineError(
            f"it counts {data.get('operations')!r} operations, and there are {operations}"
        )
