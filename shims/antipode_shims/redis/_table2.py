"""What writing and reading with the lineage stored with the value mean, without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, current
from antipode.shim import (
    Floor,
    StaleRead,
    config,
    count,
    floor,
    mark_incomplete,
    record_read,
    record_write,
    stored_text,
)

from ._clients.redis_py import was_refused
from ._format import Match, companion_of, pack, unpack
from ._position import INFO, InfoError, observation, parse_info, refused, unknown_logs
from ._promises.records import FULFILLED, look_up, refuse_abandoned, set_record
from ._promises.records import shown as recorded
from ._shim.base import BaseRedisShim

if TYPE_CHECKING:
    from antipode import Promise

    from ._commands import Command

    Key = str | bytes
    Value = str | bytes | int | float
    Expiry = int | timedelta


class RedisTable2(BaseRedisShim):
    """What the synchronous and the asyncio shim share."""

    def write_commands(
        self,
        key: Key,
        value: bytes,
        lineage: Lineage,
        *,
        ex: Expiry | None,
        px: Expiry | None,
        fulfils: Promise | None = None,
    ) -> list[Command]:
        """The packet of a write: both keys in one transaction, the position after it.

        Raises:
            ValueError: both *ex* and *px* are given.
        """
        expiry = _expiry(ex, px)
        companion = pack(value, stored_text(lineage))
        return [
            ("MULTI",),
            ("SET", key, value, *expiry),
            ("SET", companion_of(key, self.prefix), companion, *expiry),
            *self._records(fulfils),
            ("EXEC",),
            INFO,
        ]

    def delete_commands(
        self, key: Key, lineage: Lineage, fulfils: Promise | None = None
    ) -> list[Command]:
        """The packet of a deletion: a tombstone keeps its lineage as long as logs are waited on."""
        horizon_ms = int(config().horizon.total_seconds() * 1000)
        tombstone = pack(None, stored_text(lineage))
        return [
            ("MULTI",),
            ("DEL", key),
            ("SET", companion_of(key, self.prefix), tombstone, "PX", horizon_ms),
            *self._records(fulfils),
            ("EXEC",),
            INFO,
        ]

    def _records(self, fulfils: Promise | None) -> list[Command]:
        return [] if fulfils is None else [set_record(fulfils, self.prefix, FULFILLED)]

    def watched(self, promise: Promise, replies: list[Any]) -> None:
        """Take in the replies to what watches a record, before the packet of a write.

        Raises:
            PromiseAbandoned: the promise was given up.
            redis.ResponseError: the server refused.
        """
        _raise_errors(replies)
        refuse_abandoned(promise, replies[-1])

    def read_commands(self, key: Key, held: Floor | None) -> list[Command]:
        """The packet of a read: a poll and both keys at one moment, the position after it."""
        promises = () if held is None else held.promises
        return [
            ("MULTI",),
            INFO,
            ("GET", key),
            ("GET", companion_of(key, self.prefix)),
            *([look_up(promises, self.prefix)] if promises else []),
            ("EXEC",),
            INFO,
        ]

    def allowed(self, commands: list[Command], refusal: Exception | None) -> list[Command]:
        """What of a packet may be sent: no question that is refused.

        Raises:
            ConfigurationError: the address does not pass ``INFO``.
            redis.ResponseError: the server refuses what a read has to ask.
        """
        if refusal is None:
            return commands
        if isinstance(refusal, ConfigurationError) or INFO in commands[:-1]:
            raise refusal.with_traceback(None)
        return commands[:-1]

    def written(self, replies: list[Any], lineage: Lineage) -> Lineage:
        """*lineage* with the write in it, which enters the scope as well.

        Raises:
            redis.ResponseError: the server refused the write.
        """
        _raise_errors(replies[:-1])
        write = self.minted(replies[-1])
        if write is None:
            # The scope is marked already; what is handed on must say so, too.
            return lineage.marked((self.datastore, "unsampled"))
        record_write(write)
        return lineage.append(write)

    def failed(self, error: BaseException, *, sent: bool) -> None:
        """Take in that a write ended without a reply."""
        if sent and not was_refused(error):
            mark_incomplete(self.datastore, "in_doubt")

    def seen(self, replies: list[Any]) -> tuple[bytes | None, Lineage]:
        """The value and what is known of it: its stored lineage and a covering position.

        Raises:
            redis.ResponseError: the server refused the read.
        """
        _raise_errors(replies[:-1])
        _, value, companion, *_ = replies[-2]
        stored, match = unpack(value, companion, self.datastore)
        if match is not Match.OWN:
            count(match.value, self.datastore)
        lineage = stored.merge(self.covering(replies[-1]))
        if self.on_read == "merge":
            record_read(lineage)
        return value, lineage

    def judge(self, held: Floor, replies: list[Any], *, final: bool) -> bool:
        """Whether a read may be answered under *held*.

        Raises:
            UnmetError: waiting cannot help.
            redis.ResponseError: the server refused the read.
        """
        _raise_errors(replies[:-1])
        info, _, _, *more = replies[-2]
        try:
            state = parse_info(info)
            found = recorded(held.promises, more[0], state) if more else {}
            shown = observation(state, held.writes, self.history, promises=found)
        except InfoError as error:
            shown = refused(held.writes, error, held.promises)
        if not final and unknown_logs(shown):
            return False
        return held.accepts(shown)

    def floor(self, stale: StaleRead) -> Floor | None:
        """What the read that *stale* is of must see now."""
        return floor(self, stale=stale)

    def base(self, lineage: Lineage | None) -> Lineage:
        """What a write stores: *lineage*, default the current one."""
        return current() if lineage is None else lineage


def _expiry(ex: Expiry | None, px: Expiry | None) -> tuple[Any, ...]:
    if ex is not None and px is not None:
        msg = "give ex (seconds) or px (milliseconds), not both"
        raise ValueError(msg)
    if ex is not None:
        seconds = ex.total_seconds() if isinstance(ex, timedelta) else ex
        return "PX", int(seconds * 1000)
    if px is not None:
        return "PX", int(px.total_seconds() * 1000) if isinstance(px, timedelta) else int(px)
    return ()


def _raise_errors(replies: list[Any]) -> None:
    """Raise what the server refused, what was queued as well as what was executed.

    The innermost reason comes first: ``EXECABORT`` only says that there was one.
    """
    nested = [reply for each in replies if isinstance(each, list) for reply in each]
    for reply in (*replies, *nested[1:]):
        if isinstance(reply, Exception):
            raise reply


@dataclass
class Sent:
    """Whether a packet may have reached the server."""

    sent: bool = False

    def __call__(self) -> None:
        """Note that it is about to leave."""
        self.sent = True
