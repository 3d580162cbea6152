"""Which Redis commands are reads and writes, and what a companion says of its value."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from antipode import Lineage, WriteId, serialize
from antipode.shim import Incomplete
from antipode_shims.redis import COVERED_READS, COVERED_WRITES
from antipode_shims.redis._commands import Batch, Kind, kind_of
from antipode_shims.redis._format import Match, companion_of, pack, unpack

LINEAGE = Lineage([WriteId("elsewhere", "log", 7, 490_000)])


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("SET", "k", "v"), Kind.WRITE),
        (("set", "k", "v"), Kind.WRITE),
        ((b"set", "k", "v"), Kind.WRITE),
        (("GET", "k"), Kind.READ),
        (("XGROUP CREATE", "k", "g"), Kind.WRITE),
        (("XGROUP", b"create", "k", "g"), Kind.WRITE),
        (("XINFO STREAM", "k"), Kind.READ),
        (("XINFO", "HELP"), Kind.NEUTRAL),
        (("OBJECT", "FREQ", "k"), Kind.READ),
        (("CONFIG GET", "*"), Kind.NEUTRAL),
        (("PING",), Kind.NEUTRAL),
        (("EVAL", "return 1", 0), Kind.OTHER),
        (("EVALSHA", "x", 0), Kind.OTHER),
        (("FCALL", "f", 0), Kind.OTHER),
        (("FUNCTION LOAD", "x"), Kind.OTHER),
        (("MIGRATE", "h", 1, "k", 0, 1), Kind.OTHER),
        (("JSON.SET", "k", "$", "1"), Kind.OTHER),
        (("EVAL_RO", "return 1", 0), Kind.READ),
        (("FCALL_RO", "f", 0), Kind.READ),
        (("XREAD", "STREAMS", "s", "0"), Kind.READ),
        (("XREAD", "COUNT", "1", "STREAMS", "BLOCK", "0"), Kind.READ),
        (("XREAD", b"BLOCK", "0", b"STREAMS", "s", "$"), Kind.AWAITING),
        (("xread", "count", 1, "block", 0, "streams", "s", "$"), Kind.AWAITING),
        (("MULTI",), Kind.QUEUING),
        (("",), Kind.OTHER),
    ],
)
def test_kinds(args: Any, kind: Kind) -> None:
    """Names are told in any case, type and split; scripts and what is not known are ``OTHER``."""
    assert kind_of(args) is kind


def test_tables_are_apart() -> None:
    """No command is in both public tables."""
    assert not COVERED_READS & COVERED_WRITES


def test_batch() -> None:
    """A pipeline can be repeated only when nothing in it may write."""
    assert Batch.of([("GET", "a"), ("PING",)]).repeatable
    assert not Batch.of([("GET", "a"), ("SET", "a", 1)]).repeatable
    assert not Batch.of([("GET", "a"), ("EVAL", "", 0)]).repeatable
    assert Batch.of([("XREAD", "BLOCK", 1, "STREAMS", "s", "$")]).reads
    assert not Batch.of([("XREAD", "BLOCK", 1, "STREAMS", "s", "$")]).repeatable
    assert Batch.of([("EVAL", "", 0), ("GET", "a")]).may_write
    assert not Batch.of([("EVAL_RO", "", 0), ("GET", "a")]).may_write
    assert Batch.of([("MULTI",), ("SET", "a", 1)]).queuing


def test_companion_round_trip() -> None:
    """The lineage comes back for the value that it was stored with."""
    stored = pack(b"value", serialize(LINEAGE))
    assert unpack(b"value", stored, "posts") == (LINEAGE, Match.OWN)


def test_companion_of_an_overwritten_value_is_foreign() -> None:
    """A plain client's value does not get the lineage of the one it replaced."""
    stored = pack(b"value", serialize(LINEAGE))
    assert unpack(b"other", stored, "posts") == (Lineage(), Match.FOREIGN)
    assert unpack(None, stored, "posts") == (Lineage(), Match.FOREIGN)


def test_tombstone() -> None:
    """A deletion's lineage is found with nothing, and not with a value."""
    stored = pack(None, serialize(LINEAGE))
    assert unpack(None, stored, "posts") == (LINEAGE, Match.OWN)
    assert unpack(b"again", stored, "posts") == (Lineage(), Match.FOREIGN)


def test_no_companion() -> None:
    """A value without a companion is told from a key that never was."""
    assert unpack(b"value", None, "posts") == (Lineage(), Match.ABSENT)
    assert unpack(None, None, "posts") == (Lineage(), Match.OWN)


@pytest.mark.parametrize("damage", [b"", b"no bar", "\u00fc", 7, pack(b"value", "1~?")])
def test_damaged_companion_is_incomplete(damage: object) -> None:
    """A companion that cannot be read never becomes an empty lineage."""
    lineage, match = unpack(b"value", damage, "posts")
    assert match is Match.UNREADABLE
    assert lineage.incomplete == {Incomplete("posts", "unreadable")}


def test_companion_keys() -> None:
    """Keys keep their type; a companion costs less than 100 bytes beside its lineage."""
    assert companion_of("k", "ap:") == "ap:k"
    assert companion_of(b"\xff", "ap:") == b"ap:\xff"
    assert len(pack(b"v" * 10_000, "")) < 20


def test_client_library_is_named_when_missing() -> None:
    """Importing the shim needs no redis-py; using it without names the extra."""
    program = (
        "import sys\n"
        "sys.modules['redis'] = None\n"
        "import antipode\n"
        "from antipode_shims import redis\n"
        "try:\n"
        "    redis.shim('posts', 'redis://localhost')\n"
        "except antipode.ConfigurationError as error:\n"
        "    assert 'antipode-xcy[redis]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_import_loads_no_client_library() -> None:
    """The client library is loaded when it is first used."""
    program = "import sys, antipode_shims.redis; sys.exit('redis' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
