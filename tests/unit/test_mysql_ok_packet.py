"""Replies of MySQL and MariaDB, as captured from servers, read without one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode_shims.mysql._position import ok_packet
from antipode_shims.mysql._position.ok_packet import (
    AUTOCOMMIT,
    IN_TRANSACTION,
    MORE_RESULTS,
    Ok,
    eof_status,
    is_eof,
    is_ok,
    parse_ok,
)

UUID = "5dffb4af-e53c-11f1-bb51-02fc00000001"


def gtids(text: str) -> bytes:
    """An OK packet of MySQL with a GTID set, as OWN_GTID sends it."""
    inner = bytes([0, len(text)]) + text.encode()
    entry = bytes([3, len(inner)]) + inner
    return b"\x00\x01\x01\x02@\x00\x00\x00" + bytes([len(entry)]) + entry


@pytest.mark.parametrize(
    ("data", "gtid"),
    [
        (gtids(f"{UUID}:5"), f"{UUID}:5"),
        (gtids(f"{UUID}:11-12"), f"{UUID}:11-12"),
        (b"\x00\x01\x01\x02@\x00\x00\x00\x12\x00\x10\tlast_gtid\x050-1-5", "0-1-5"),
        (
            b"\x00\x00\x00\x02@\x00\x00\x00#\x00\x0e\nautocommit\x02ON\x00\x11\tlast_gtid\x060-1-16",
            "0-1-16",
        ),
        # MariaDB may put several variables into one entry.
        (
            b"\x00\x00\x00\x02@\x00\x00\x00\x21\x00\x1f\nautocommit\x02ON\tlast_gtid\x060-1-16",
            "0-1-16",
        ),
        (b"\x00\x00\x00\x03@\x00\x00\x00\x0b\x05\t\x08T_______", None),
        (b"\x00\x00\x00\x02@\x00\x00\x00\x00", None),
        (b"\x00\x00\x00\x02\x00\x00\x00", None),
        (b"\x00\x00\x00\x02@\x00\x00\x00\x0d\x00\x0b\tlast_gtid\x00", None),
    ],
)
def test_positions_are_found(data: bytes, gtid: str | None) -> None:
    """Whatever else the session state holds, the position of what was committed is found."""
    found = parse_ok(data, tracked=True)
    assert found.gtid == gtid
    assert not found.torn


@pytest.mark.parametrize(
    ("data", "gtid"),
    [
        (gtids(f"{UUID}:5"), f"{UUID}:5"),
        (b"\x00\x01\x01\x02@\x00\x00\x00\x12\x00\x10\tlast_gtid\x050-1-5", "0-1-5"),
    ],
    ids=["mysql", "mariadb"],
)
def test_the_usual_packet_is_not_searched(
    data: bytes, gtid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one write and its position: most packets are so, and it costs a fifth."""
    monkeypatch.setattr(ok_packet, "_changes", None)
    assert parse_ok(data, tracked=True).gtid == gtid


def test_what_a_transaction_did_is_found() -> None:
    """Beside a position or alone; empty where the packet does not say."""
    alone = b"\x00\x00\x00\x03@\x00\x00\x00\x0b\x05\t\x08T_R_W___"
    both = b"\x00\x01\x01\x02@\x00\x00\x00\x1d\x00\x10\tlast_gtid\x050-1-8\x05\t\x08________"
    assert parse_ok(alone, tracked=True).transaction == "T_R_W___"
    assert parse_ok(both, tracked=True)[3:] == ("0-1-8", False, "________")
    assert parse_ok(gtids(f"{UUID}:5"), tracked=True).transaction == ""


def test_a_client_sees_its_old_packet() -> None:
    """The packet without session state is what a server sends to clients that ask for none."""
    info = b"\x26Records: 2  Duplicates: 0  Warnings: 0"
    state = b"\x12\x00\x10\tlast_gtid\x050-1-8"
    tracked = b"\x00\x02\x04\x02@\x00\x00" + info + state
    assert parse_ok(tracked, tracked=True).plain == b"\x00\x02\x04\x02@\x00\x00" + info
    assert parse_ok(tracked, tracked=True).affected == 2
    assert parse_ok(gtids(f"{UUID}:5"), tracked=True).plain == b"\x00\x01\x01\x02@\x00\x00"


def test_untracked_packets_are_left_alone() -> None:
    """Without the capability what follows the flags is text."""
    data = b"\x00\x01\x00\x03\x00\x00\x00(Rows matched: 1"
    assert parse_ok(data, tracked=False) == Ok(IN_TRANSACTION | AUTOCOMMIT, 1, data)


def test_large_counts() -> None:
    """Length-encoded numbers of every size."""
    data = b"\x00\xfc\x10\x27\xfd\x01\x02\x03\x0a\x00\x00\x00"
    assert parse_ok(data, tracked=True).affected == 10_000
    data = b"\x00\xfe\x00\x00\x00\x00\x01\x00\x00\x00\x00\x0a\x00\x00\x00"
    found = parse_ok(data, tracked=True)
    assert found.affected == 1 << 32
    assert found.status & MORE_RESULTS


@given(st.binary(max_size=60), st.booleans())
def test_no_packet_crashes(data: bytes, tracked: bool) -> None:  # noqa: FBT001 - hypothesis'
    """What cannot be read is torn, never an error."""
    parse_ok(b"\x00" + data, tracked=tracked)


@given(st.integers(min_value=8, max_value=60))
def test_a_torn_packet_says_so(length: int) -> None:
    """Session state that ends too early is no position, and no silence."""
    whole = gtids(f"{UUID}:5")
    found = parse_ok(whole[: min(length, len(whole) - 1)], tracked=True)
    assert found.gtid is None
    assert found.torn == (length >= 8)


def test_packets_are_told_apart() -> None:
    """OK and EOF by their first byte and size: rows may begin with the same."""
    assert is_ok(b"\x00\x00\x00\x02\x00\x00\x00")
    assert not is_ok(b"\x01\x00\x00\x02\x00\x00\x00")
    assert is_eof(b"\xfe\x00\x00\x22\x00")
    assert not is_eof(b"\xfe" + b"\x00" * 8)
    assert eof_status(b"\xfe\x00\x00\x23\x00") == 0x23
