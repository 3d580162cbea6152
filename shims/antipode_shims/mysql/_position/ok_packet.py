"""What a server's reply says of the session: flags, and positions of committed writes.

Pure: the bytes of one packet in, values out. An *OK packet* carries session state where the client
set ``CLIENT_SESSION_TRACK`` when it connected: MySQL the GTIDs that a statement committed
(``session_track_gtids``), MariaDB the variable ``last_gtid``. Where a server is configured so
(``session_track_transaction_info``), it also says what the open transaction did. Sources: the MySQL
source's ``OK_Packet`` page, the MariaDB protocol's ``OK_Packet`` page.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Capability that a client must send in its handshake to get session state.
SESSION_TRACK: Final = 1 << 23

#: Flags of a reply's ``status``.
IN_TRANSACTION: Final = 0x0001
AUTOCOMMIT: Final = 0x0002
MORE_RESULTS: Final = 0x0008
STATE_CHANGED: Final = 0x4000

#: Length-encoded numbers from here on take more than one byte.
_LONG: Final = 0xFB
_SYSTEM_VARIABLE: Final = 0
_GTIDS: Final = 3
_TRANSACTION: Final = 5
#: Where the information text of a packet with counts of one byte each begins.
_PLAIN: Final = 7
#: Where its session state begins, if the text is empty.
_STATE: Final = 9
_STATE_CHANGED_HIGH: Final = STATE_CHANGED >> 8
#: The variable's name with its length.
_LAST_GTID: Final = b"\x09last_gtid"
#: How much of the session state comes before its value.
_NAME: Final = 3 + len(_LAST_GTID)


class Ok(NamedTuple):
    """One OK packet.

    Attributes:
        status: the server's flags.
        affected: rows that the statement changed.
        plain: the packet as a client that knows nothing of session state expects it.
        gtid: what the server says was committed: a MySQL GTID set or MariaDB's ``last_gtid``.
        torn: whether the session state could not be read.
        transaction: what the open transaction did so far, as :data:`WROTE_ALONE` has it; empty
            where the server does not say, or has said it already.
    """

    status: int
    affected: int
    plain: bytes
    gtid: str | None = None
    torn: bool = False
    transaction: str = ""

    @property
    def warned(self) -> bool:
        """Whether there are warnings, of a statement whose counts take a byte each."""
        return self.plain[5:_PLAIN] not in (b"", b"\0\0")


#: What a transaction did that wrote, and read no table; explicit ones begin with T, others with I.
WROTE_ALONE: Final = "___W___"


def is_ok(data: bytes) -> bool:
    """Whether the first packet of a reply is an OK packet."""
    return len(data) >= 7 and data[0] == 0  # noqa: PLR2004 - header, two counts, four bytes


def is_eof(data: bytes) -> bool:
    """Whether a packet ends the columns or the rows of a result."""
    return data[0] == 0xFE and len(data) < 9  # noqa: PLR2004 - longer ones are rows


def eof_status(data: bytes) -> int:
    """The flags in an EOF packet."""
    return int.from_bytes(data[3:5], "little")


def parse_ok(data: bytes, *, tracked: bool) -> Ok:
    """Read an OK packet.

    Args:
        data: the packet's payload, its first byte included.
        tracked: whether ``CLIENT_SESSION_TRACK`` was agreed on: the information text has a
            length then, and session state may follow.
    """
    if tracked and (gtid := _alone(data)):
        status = data[3] | data[4] << 8
        return Ok(status, data[1], data[:_PLAIN], gtid)
    try:
        affected, at = data[1], 2
        if affected >= _LONG:
            affected, at = _count(data, 1)
        at = at + 1 if data[at] < _LONG else _count(data, at)[1]
        status, at = int.from_bytes(data[at : at + 2], "little"), at + 4
    except IndexError:
        return Ok(0, 0, data, torn=True)
    if not tracked or at >= len(data):
        return Ok(status, affected, data)
    try:
        info, after = _text(data, at)
        state = _text(data, after)[0] if status & STATE_CHANGED else b""
        # Servers send the length to clients that know of none, too.
        plain = data[:after] if info else data[:at]
        gtid, transaction = _changes(state)
        return Ok(status, affected, plain, gtid, transaction=transaction)
    except (IndexError, UnicodeDecodeError):
        return Ok(status, affected, data[:at], torn=True)


def _alone(data: bytes) -> str | None:
    """The position in a packet of the usual layout; None where the rest has to be searched.

    Usual are counts of one byte each, no information text, and one position as the session state.
    """
    rest = len(data) - _STATE
    if not (
        _NAME < rest < _LONG
        and data[1] < _LONG
        and data[2] < _LONG
        and data[4] & _STATE_CHANGED_HIGH
        and data[7] == 0
        and data[8] == rest
        and data[10] == rest - 2
    ):
        return None
    kind = data[9]
    if kind == _GTIDS and data[12] == rest - 4:
        found = data[13:]
    elif kind == _SYSTEM_VARIABLE and data[11:21] == _LAST_GTID and data[21] == rest - _NAME:
        found = data[22:]
    else:
        return None
    return found.decode() if found.isascii() else None


def _changes(state: bytes) -> tuple[str | None, str]:
    """The position in a packet's session state, and what it says of the transaction; the last."""
    found, transaction, at = None, "", 0
    while at < len(state):
        kind = state[at]
        entry, at = _text(state, at + 1)
        if kind == _GTIDS:
            found = _text(entry, 1)[0].decode("ascii")  # After the encoding's number.
        elif kind == _SYSTEM_VARIABLE:
            found = _last_gtid(entry) or found
        elif kind == _TRANSACTION:
            transaction = _text(entry, 0)[0].decode("ascii")
    return found or None, transaction


def _last_gtid(entry: bytes) -> str | None:
    """``last_gtid`` among name and value pairs: MariaDB puts several into one entry."""
    found, at = None, 0
    while at < len(entry):
        name, at = _text(entry, at)
        value, at = _text(entry, at)
        if name == b"last_gtid":
            found = value.decode("ascii")
    return found


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """A length-encoded text, and where it ends.

    Raises:
        IndexError: the data ends before it.
    """
    length, start = data[at], at + 1
    if length >= _LONG:
        length, start = _count(data, at)
    end = start + length
    if end > len(data):
        raise IndexError(end)
    return data[start:end], end


def _count(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer, and where it ends.

    Raises:
        IndexError: the data ends before it.
    """
    first = data[at]
    if first < _LONG:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, len(data))
    end = at + 1 + size
    if end > len(data):
        raise IndexError(end)
    return int.from_bytes(data[at + 1 : end], "little"), end
