"""Which commands read, write, or do neither.

Static tables, so that results never depend on a question to the server; taken from ``COMMAND`` of
Redis 7.0 and the manual of Redis 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: A command's name and arguments.
Command = tuple[Any, ...]


class Kind(Enum):
    """What a command means for a lineage."""

    READ = "read"
    AWAITING = "awaiting"
    WRITE = "write"
    OTHER = "other"
    NEUTRAL = "neutral"
    QUEUING = "queuing"


#: Python 3.11 looks an enumeration's members up slowly; these are wanted for every command.
READ, WRITE = Kind.READ, Kind.WRITE

#: Writes that enter the lineage of an instrumented client.
COVERED_WRITES = frozenset(
    """
    APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR
    DECRBY DEL DELEX EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GEORADIUS GEORADIUSBYMEMBER
    GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HEXPIRE HEXPIREAT HGETDEL HGETEX HINCRBY HINCRBYFLOAT
    HMSET HPERSIST HPEXPIRE HPEXPIREAT HSET HSETEX HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE
    LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE MSET MSETEX MSETNX PERSIST PEXPIRE PEXPIREAT
    PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET
    SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE SORT SPOP SREM SUNIONSTORE SWAPDB UNLINK VADD
    VREM VSETATTR XACK XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XREADGROUP XSETID XTRIM ZADD
    ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX
    ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
    """.split()  # noqa: SIM905 - a table that is read by eye
) | frozenset(
    {
        "XGROUP CREATE",
        "XGROUP CREATECONSUMER",
        "XGROUP DELCONSUMER",
        "XGROUP DESTROY",
        "XGROUP SETID",
    }
)

#: Reads that a floor holds back, in the round trip of the read itself; the server sees to it that
#: scripts among them do not write.
COVERED_READS = frozenset(
    """
    BITCOUNT BITFIELD_RO BITPOS DBSIZE DIGEST DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO
    GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS
    HEXPIRETIME HGET HGETALL HKEYS HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS
    KEYS LCS LINDEX LLEN LPOS LRANGE MGET PEXPIRETIME PFCOUNT PTTL RANDOMKEY SCAN SCARD SDIFF SINTER
    SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH
    TTL TYPE VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM XLEN XPENDING
    XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE
    ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE
    ZUNION
    """.split()  # noqa: SIM905 - a table that is read by eye
) | frozenset(
    {
        "MEMORY USAGE",
        "OBJECT ENCODING",
        "OBJECT FREQ",
        "OBJECT IDLETIME",
        "OBJECT REFCOUNT",
        "XINFO CONSUMERS",
        "XINFO GROUPS",
        "XINFO STREAM",
    }
)

#: Neither reads nor writes data. What is in no table at all may read and write.
_NEUTRAL = frozenset(
    """
    ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DEBUG ECHO FAILOVER HELLO
    INFO LASTSAVE LATENCY LOLWUT MEMORY MODULE MONITOR OBJECT PING PSUBSCRIBE PUBLISH PUBSUB
    PUNSUBSCRIBE QUIT READONLY READWRITE REPLICAOF RESET ROLE SAVE SCRIPT SELECT SENTINEL SHUTDOWN
    SLAVEOF SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE TIME UNSUBSCRIBE UNWATCH WAIT
    WAITAOF WATCH
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: Sent by hand on a connection of one's own: what follows is queued on the server.
_QUEUING = frozenset({"DISCARD", "EXEC", "MULTI"})
#: The word after these decides.
_CONTAINERS = frozenset({"MEMORY", "OBJECT", "XGROUP", "XINFO"})


def name_of(args: Sequence[Any]) -> str:
    """A command's name in capitals, with its second word where that decides."""
    words = _text(args[0]).upper().split()
    if not words:
        return ""
    if words[0] not in _CONTAINERS:
        return words[0]
    if len(words) == 1 and len(args) > 1:
        words.append(_text(args[1]).upper())
    return " ".join(words[:2])


def _text(word: object) -> str:
    return word.decode("latin-1") if isinstance(word, (bytes, bytearray)) else str(word)


def kind_of(args: Sequence[Any]) -> Kind:
    """What a command means for a lineage.

    Scripts, functions, modules' commands and unknown ones are ``OTHER``: they may write and read
    whatever they like. A read is ``AWAITING`` when it waits on the server for what comes: made
    twice, it would miss what came the first time.
    """
    word = args[0]
    if isinstance(word, str) and (kind := _SPELLED.get(word)) is not None:
        return kind
    name = name_of(args)
    if name in COVERED_WRITES:
        return Kind.WRITE
    if name in COVERED_READS:
        awaiting = name == "XREAD" and any(_text(each).upper() == "BLOCK" for each in args[1:4:2])
        return Kind.AWAITING if awaiting else Kind.READ
    if name in _QUEUING:
        return Kind.QUEUING
    if name in _NEUTRAL or name.partition(" ")[0] in _CONTAINERS:
        return Kind.NEUTRAL
    return Kind.OTHER


#: Names as redis-py spells them: the way of nearly every call.
_SPELLED = {
    name: kind
    for names, kind in ((COVERED_WRITES, Kind.WRITE), (COVERED_READS - {"XREAD"}, Kind.READ))
    for name in names
}


@dataclass(frozen=True, slots=True)
class Batch:
    """What the commands of a pipeline or transaction mean together."""

    reads: bool
    awaits: bool
    writes: bool
    others: bool
    queuing: bool

    @classmethod
    def of(cls, commands: Iterable[Sequence[Any]]) -> Batch:
        """Judge every command."""
        kinds = [kind_of(args) for args in commands]
        return cls(
            reads=Kind.READ in kinds or Kind.AWAITING in kinds,
            awaits=Kind.AWAITING in kinds,
            writes=Kind.WRITE in kinds,
            others=Kind.OTHER in kinds,
            queuing=Kind.QUEUING in kinds,
        )

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent again without a second effect."""
        return not (self.may_write or self.awaits or self.queuing)

    @property
    def may_write(self) -> bool:
        """Whether a write is among them, or what may be one."""
        return self.writes or self.others
