"""Builds record files of a dry run as docs/spec/dry-run.md has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

REQUEST = "00000000000000aa"
OTHER_REQUEST = "00000000000000bb"
Where = tuple[str, int, str]


def entry(version: int, datastore: str = "posts", log: str = "log-1") -> dict[str, str]:
    """One write as records name it."""
    return {"datastore": datastore, "log": log, "version": str(version)}


@dataclass
class Recorder:
    """One process that records; times are seconds after `start`."""

    process: str
    service: str = "service"
    region: str | None = None
    start: float = 1_800_000_000.0
    test: str | None = None
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        facts = {"service": self.service, "region": self.region, "pid": 1234}
        self.add("process", 0.0, **facts, language="python", language_version="3.11.2")

    def add(self, kind: str, after: float, **fields: Any) -> int:
        number = len(self.lines)
        head = {"v": 1, "kind": kind, "t": self.start + after, "process": self.process, "n": number}
        if kind != "process" and self.test:
            head["test"] = self.test
        self.lines.append(head | fields)
        return number

    def scope(self, after: float, *, opened: str = "incoming", request: str = REQUEST) -> int:
        return self.add("scope", after, request=request, opened=opened)

    def write(
        self, after: float, where: Where, wrote: dict[str, str], *, request: str | None = REQUEST
    ) -> int:
        return self.add("write", after, request=request, site=_site(where), write=wrote)

    def read(
        self,
        after: float,
        where: Where,
        *writes: dict[str, str],
        verdict: str = "unguarded",
        request: str | None = REQUEST,
        **more: Any,
    ) -> int:
        return self.add(
            "read",
            after,
            request=request,
            site=_site(where),
            datastore=writes[0]["datastore"],
            verdict=verdict,
            writes=list(writes),
            **more,
        )

    def barrier(self, after: float, where: Where, *guards: dict[str, str]) -> int:
        return self.add(
            "barrier",
            after,
            request=REQUEST,
            site=_site(where),
            guards=list(guards),
            at="now",
            only=None,
            exclude=[],
            dry=True,
        )

    def evidence(self, after: float, of: int, waited_s: float | None, *, stale: bool) -> int:
        confirmed = True if stale else None
        return self.add("evidence", after, of=of, confirmed=confirmed, waited_s=waited_s)

    def message(
        self,
        after: float,
        where: Where | None,
        to: str,
        *,
        destination: str = "",
        request: str = REQUEST,
    ) -> int:
        """Sent from a place, or handled."""
        about: dict[str, Any] = {"to": to, **({"destination": destination} if destination else {})}
        if where is None:
            return self.add("message", after, request=request, step="handled", **about)
        about |= {"site": _site(where), "step": "sent"}
        return self.add("message", after, request=request, **about)

    def call(self, after: float, where: Where, to: str, *, request: str = REQUEST) -> int:
        return self.add("call", after, request=request, site=_site(where), to=to)

    def rule(self, after: float, entry: str, *, matched: bool) -> int:
        datastore, _, url = entry.partition("=")
        database = "".join(url.split("/", 3)[3:]) or None
        about = {"datastore": datastore, "database": database, "entry": entry}
        return self.add("rule", after, **about, matched=matched)

    def lint(self, after: float, where: Where, lint: str, *, detail: str = "") -> int:
        about = {"lint": lint, "datastore": "posts", "detail": detail}
        return self.add("lint", after, request=REQUEST, site=_site(where), **about)

    @property
    def text(self) -> str:
        return "".join(f"{json.dumps(line)}\n" for line in self.lines)

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"20270115T080000Z-1234-{self.process[:6]}.jsonl"
        path.write_text(self.text, encoding="utf-8")
        return path


def _site(where: Where) -> dict[str, Any]:
    return dict(zip(("file", "line", "function"), where, strict=True))


SAVE = ("storage/app.py", 31, "save_post")
SHOW = ("notifier/app.py", 48, "on_message")


def post_notification() -> tuple[Recorder, Recorder]:
    """A post is written in one service; another is notified and reads it too early, twice."""
    storage = Recorder("aaaaaaaaaaaa", "post-storage", "us")
    notifier = Recorder("bbbbbbbbbbbb", "notifier", "eu", test="tests/test_feed.py::test_shown")
    for count, request in enumerate((REQUEST, OTHER_REQUEST)):
        storage.scope(count, opened="here", request=request)
        storage.write(count + 0.010, SAVE, entry(10 + count), request=request)
        notifier.scope(count + 0.020, request=request)
        read = notifier.read(count + 0.030, SHOW, entry(10 + count), request=request)
        notifier.evidence(count + 0.140, read, 0.090 + count * 0.020, stale=count == 0)
    return storage, notifier


def guarded() -> Recorder:
    """A process whose only read has its barrier."""
    one = Recorder("cccccccccccc")
    one.scope(0, opened="here")
    one.write(0.1, SAVE, entry(1))
    one.barrier(0.2, ("app.py", 9, "show"), entry(1))
    one.read(0.3, ("app.py", 10, "show"), entry(1), verdict="guarded")
    return one


def save(folder: Path, recorders: Iterable[Recorder]) -> Path:
    """Write the files of all *recorders* into *folder*."""
    for one in recorders:
        one.save(folder)
    return folder
