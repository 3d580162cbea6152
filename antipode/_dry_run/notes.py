"""What travels for a dry run with the lineage of a request: its id and its guards.

Items of kind ``0``, which the lineage format reserves for what is no dependency
(docs/spec/dry-run.md).
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from typing import TYPE_CHECKING

from antipode._lineage.codec import decode, encode
from antipode._lineage.errors import LineageDecodeError
from antipode._lineage.lineage import Lineage
from antipode._lineage.write_id import Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode._lineage.write_id import Dependency

    #: Region, datastore, log, and the version where versions have no order; of a promise its id.
    _Log = tuple[str, str, str, str | None]
    Guards = Mapping[_Log, Dependency]

_REQUEST = re.compile(r"0r([0-9a-f]{16})")
_GUARD = re.compile(r"0g([A-Za-z0-9_-]+)\.([urkp].*)")
#: What stands for a process without a region.
_NO_REGION = "-"


class Notes:
    """The notes of one request. Changed by one thread at a time; read by any.

    Attributes:
        guards: the guards of now, by what they cover; replaced by others, and never changed.
    """

    __slots__ = ("_items", "_request", "guards")

    def __init__(self) -> None:
        """Nothing is known of the request."""
        self._request = ""
        self.guards: Guards = {}
        self._items: frozenset[str] | None = None

    @property
    def drawn(self) -> str:
        """The request's id, if there is one by now; for any thread."""
        return self._request

    @property
    def request(self) -> str:
        """The request's id; drawn now, where none came with it."""
        if not self._request:
            self._request = secrets.token_hex(8)
        return self._request

    def take(self, items: Collection[str]) -> None:
        """Merge the notes among *items*; those that are malformed say nothing."""
        came = [request for item in items if (request := request_of(item))]
        if came and not self._request:
            self._request = min(came)
        for item in items:
            if (found := guard_of(item)) is not None:
                self.guard(*found)
        self._items = None

    def guard(self, region: str, guarded: Dependency) -> None:
        """Note that a barrier in *region* waits, or would have waited, for *guarded*."""
        held = self.guards.get(log := _log(region, guarded))
        if held is None or _number(held) < _number(guarded):
            if isinstance(guarded, WriteId):
                guarded = WriteId(guarded.datastore, guarded.key, guarded.version)
            self.guards = {**self.guards, log: guarded}
            self._items = None

    def covers(self, region: str, wanted: Dependency) -> bool:
        """Whether a guard of *region* covers *wanted*."""
        return covers(self.guards, region, wanted)

    def items(self, egress: Collection[str] | None = None) -> frozenset[str]:
        """What travels; of *egress*, the datastores that may be named, alone."""
        if egress is not None:
            return self._rendered(egress)
        if self._items is None:
            self._items = self._rendered(None)
        return self._items

    def _rendered(self, egress: Collection[str] | None) -> frozenset[str]:
        guards = [
            f"0g{_region_token(log[0])}.{_item_of(guarded)}"
            for log, guarded in self.guards.items()
            if egress is None or guarded.datastore in egress
        ]
        return frozenset([f"0r{self.request}", *guards])


def request_of(item: str) -> str:
    """The id of a request, of 16 hexadecimal digits, that *item* notes; empty for any other."""
    match = _REQUEST.fullmatch(item)
    return match[1] if match else ""


def guard_of(item: str) -> tuple[str, Dependency] | None:
    """What *item* says is guarded: the region, empty for none, and the dependency.

    None for any other item, and for one that is malformed.
    """
    if (match := _GUARD.fullmatch(item)) is None:
        return None
    region, guarded = _region_name(match[1]), _guarded(match[2])
    return None if region is None or guarded is None else (region, guarded)


def covers(guards: Guards, region: str, wanted: Dependency) -> bool:
    """Whether one of *guards*, of *region*, covers *wanted*."""
    held = guards.get(_log(region, wanted))
    return held is not None and _number(held) >= _number(wanted)


def _log(region: str, found: Dependency) -> _Log:
    if isinstance(found, Promise):
        return region, found.datastore, "", found.id
    opaque = found.version if isinstance(found.version, str) else None
    return region, found.datastore, found.key, opaque


def _number(found: Dependency) -> int:
    """What orders the writes of one log; opaque versions and promises are alone in theirs."""
    if isinstance(found, Promise):
        return 0
    return found.version if isinstance(found.version, int) else 0


def _item_of(guarded: Dependency) -> str:
    alone = Lineage(promises=[guarded]) if isinstance(guarded, Promise) else Lineage([guarded])
    return encode(alone).partition("~")[2]


def _guarded(item: str) -> Dependency | None:
    try:
        lineage = decode(f"1~{item}")
    except LineageDecodeError:
        return None
    found = *lineage, *lineage.promises
    return found[0] if len(found) == 1 else None


def _region_token(region: str) -> str:
    packed = base64.urlsafe_b64encode(region.encode("utf-8", "surrogatepass"))
    return packed.decode().rstrip("=") or _NO_REGION


def _region_name(token: str) -> str | None:
    """The region that *token* stands for, empty for none; None where it is malformed."""
    if token == _NO_REGION:
        return ""
    try:
        packed = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        return packed.decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        return None
