"""The characters of a lineage's text: alphabet, tokens, numbers, limits; what items it has."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from functools import lru_cache

from .errors import LineageDecodeError

#: Largest integer version: an unsigned 64-bit number (MongoDB timestamps need all of it).
MAX_VERSION = 2**64 - 1
#: Largest written hour: five base-36 digits.
MAX_HOUR = 36**5 - 1
#: Largest expiry of a promise, in Unix seconds: eight base-36 digits.
MAX_EXPIRY = 36**8 - 1

#: Longest text that is decoded, in characters.
MAX_TEXT = 65_536
#: Most items that are decoded.
MAX_ITEMS = 4_096
#: Longest text of another major version: as an item of ours it must fit in MAX_TEXT again.
MAX_FOREIGN = MAX_TEXT - len("1~z1ek8.")

_ALPHABET = re.compile(r"[A-Za-z0-9._~-]*")
_LITERAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
#: The last field of an item may hold dots.
_DOTTED = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
#: What begins a reserved name, as a token: base64 of UTF-8 never begins like that.
_SIGILS = {"@": "--", "~": "-_"}
_SIGIL_OF = {spelled: sigil for sigil, spelled in _SIGILS.items()}
_SIGIL_CHARS = 2
_NUMBER = re.compile(r"0|[1-9a-z][0-9a-z]{0,12}")
_HEADER = re.compile(r"1(?:[1-9a-z][0-9a-z]{0,4})?")
_FOREIGN = re.compile(r"[02-9]")
#: An item that carries a text of another major version: how many ``~`` are in it, and the text.
_CARRIED = re.compile(r"z(0|[1-9a-z][0-9a-z]{0,12})\.([02-9][A-Za-z0-9._~-]*)")
_CARRIER = re.compile(r"z(0|[1-9a-z][0-9a-z]{0,12})\.")
#: An item of no kind that this version gives a meaning.
_UNKNOWN = re.compile(r"[A-HIJL-QSTV-Za-gjl-nqstv-y0-9._-][A-Za-z0-9._-]*")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
#: Two digits of base 36 at a time: half the divisions.
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
UUID_CHARS = 22
#: Whoever sends a longer text pays for its decoding at once.
_MOST_UNREAD = 8_192
_STAMP = (
    r"[A-Za-z0-9_][A-Za-z0-9_-]*\."
    r"(?:(?:[1-9a-z][0-9a-z]{0,2})?-)?"
    r"(?:0|[1-9a-z][0-9a-z]{0,11}|[12][0-9a-z]{12}|_[A-Za-z0-9_][A-Za-z0-9_-]*)\."
)
#: Texts of writes alone, as most are. Narrower than the grammar: the hour in the header has more
#: digits than an age, so that it is the later one, and each number has at most 64 bits.
_WRITES = re.compile(
    r"1[1-9a-z][0-9a-z]{3,4}(?:~(?:"
    rf"[kK]{_STAMP}[A-Za-z0-9_.][A-Za-z0-9_.-]*"
    rf"|[uU]{_STAMP}[A-Za-z0-9_-]{{21}}[AQgw][A-Za-z0-9_.-]*"
    rf"|[rR]{_STAMP}[A-Za-z0-9_-]{{26}}[AEIMQUYcgkosw048]"
    r"))*"
)


class ItemError(ValueError):
    """An item of a known kind does not follow its grammar."""


def to_base36(number: int) -> str:
    """*number* in lower-case base 36 without leading zeros."""
    text = ""
    while number >= len(_PAIRS):
        number, pair = divmod(number, len(_PAIRS))
        text = _PAIRS[pair] + text
    return (_PAIRS[number] if number >= len(_DIGITS) else _DIGITS[number]) + text


@lru_cache(maxsize=64)
def header_of(newest_h: int) -> str:
    return f"1{to_base36(newest_h)}" if newest_h else "1"


def to_base64(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).translate(_TO_URLSAFE, b"=").decode("ascii")


def to_token(text: str) -> str:
    """*text* as it is where the alphabet allows, else ``-`` and the base64url of its UTF-8."""
    return text if _LITERAL.fullmatch(text) else _spelled(text, _LITERAL)


def to_key(text: str) -> str:
    """*text* as the last field of an item, which may hold dots; otherwise as a token."""
    return text if _DOTTED.fullmatch(text) else _spelled(text, _DOTTED)


def _spelled(text: str, literal: re.Pattern[str]) -> str:
    """*text*, which is no *literal*: one after a sigil, or base64."""
    sigil = _SIGILS.get(text[:1])
    if sigil is not None and literal.fullmatch(text, 1):
        return f"{sigil}{text[1:]}"
    return f"-{to_base64(text.encode())}"


def carried(text: str) -> str:
    """The item that carries *text*, a lineage of another major version, as it is."""
    return f"z{to_base36(text.count('~'))}.{text}"


def foreign_of(item: str) -> str | None:
    """The text of another major version that *item* carries; None where it carries none."""
    found = _CARRIED.fullmatch(item)
    if found is None or found[2].count("~") != int(found[1], 36):
        return None
    return found[2]


def is_unknown(item: str) -> bool:
    """Whether *item* may be among the items that this version cannot judge."""
    return _UNKNOWN.fullmatch(item) is not None or foreign_of(item) is not None


def _too_long(text: str, most: int) -> LineageDecodeError:
    return LineageDecodeError(
        "lineage_too_long",
        f"a lineage has at most {most} characters, this text {len(text)}",
        offset=most,
    )


def refused_item(item: str, error: ValueError, offset: int) -> LineageDecodeError:
    return LineageDecodeError(
        "lineage_item", f"item {item[:40]!r} is malformed: {error}", offset=offset
    )


def items_of(text: str) -> tuple[list[str], int]:
    """The items of *text*, undecoded, and the hour in its header, 0 without one.

    A text of another major version is one item of ours.

    Raises:
        LineageDecodeError: it is no lineage, whatever its items are; the ``code`` says why.
    """
    is_foreign = _FOREIGN.match(text) is not None
    most = MAX_FOREIGN if is_foreign else MAX_TEXT
    if len(text) > most:
        raise _too_long(text, most)
    if (good := _ALPHABET.match(text)) is None or good.end() != len(text):
        offset = good.end() if good else 0
        raise LineageDecodeError(
            "lineage_alphabet", f"character {text[offset]!r} is not of a lineage", offset=offset
        )
    if is_foreign:
        return [carried(text)], 0
    header, *items = text.split("~")
    if not _HEADER.fullmatch(header):
        raise LineageDecodeError(
            "lineage_header", f"{header[:16]!r} is no header of a lineage of version 1"
        )
    if "~z" in text:
        items = _gathered(items)
    if len(items) > MAX_ITEMS:
        raise LineageDecodeError(
            "lineage_too_many", f"a lineage has at most {MAX_ITEMS} items, this text {len(items)}"
        )
    return items, int(header[1:], 36) if len(header) > 1 else 0


def is_of_writes(text: str) -> bool:
    """Whether *text* is a lineage of writes alone, which can be decoded when somebody asks.

    False says nothing: decode it then.
    """
    return len(text) <= _MOST_UNREAD and _WRITES.fullmatch(text) is not None


def _gathered(parts: list[str]) -> list[str]:
    """The items that *parts* between ``~`` make: what carries a text takes its parts with it."""
    items: list[str] = []
    index = 0
    while index < len(parts):
        carrier = _CARRIER.match(parts[index])
        more = int(carrier[1], 36) if carrier else 0
        end = index + 1 + more if index + more < len(parts) else index + 1
        items.append("~".join(parts[index:end]))
        index = end
    return items


def promise_item(datastore: str, promise_id: str, expires_s: int) -> str:
    """The item of a promise."""
    return f"p{to_token(datastore)}.{to_base36(expires_s)}.{to_base64(bytes.fromhex(promise_id))}"


def promise_fields(item: str) -> tuple[str, str, int]:
    """The datastore, the id and the expiry in the *item* of a promise.

    Raises:
        ItemError: it does not follow the grammar.
    """
    datastore, expires, packed = fields_of(item[1:], 3)
    return from_token(datastore), from_base64(packed, 16).hex(), from_base36(expires)


_TO_URLSAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URLSAFE = str.maketrans("-_", "+/")


def fields_of(body: str, count: int) -> list[str]:
    """The *count* fields of *body*, of which the last may hold dots.

    Raises:
        ItemError: it has fewer.
    """
    fields = body.split(".", count - 1)
    if len(fields) != count:
        msg = f"it has {len(fields)} fields, not {count}"
        raise ItemError(msg)
    return fields


def from_base36(digits: str) -> int:
    if not _NUMBER.fullmatch(digits) or (number := int(digits, 36)) > MAX_VERSION:
        msg = f"{digits[:16]!r} is no number of at most 64 bits in base 36"
        raise ItemError(msg)
    return number


def from_base64(packed: str, length: int) -> bytes:
    """*length* bytes of base64url; every byte string has exactly one spelling."""
    raw = from_any_base64(packed)
    if len(raw) != length:
        msg = f"{packed[:32]!r} is not the base64url of {length} bytes"
        raise ItemError(msg)
    return raw


def from_any_base64(packed: str) -> bytes:
    if "." in packed or len(packed) % 4 == 1:
        msg = f"{packed[:32]!r} is no base64url"
        raise ItemError(msg)
    raw = a2b_base64(packed.translate(_FROM_URLSAFE) + "=" * (-len(packed) % 4))
    if to_base64(raw) != packed:
        msg = f"{packed[:32]!r} is no canonical base64url"
        raise ItemError(msg)
    return raw


def from_token(token: str) -> str:
    return token if _LITERAL.fullmatch(token) else _unspelled(token, _LITERAL)


def from_key(token: str) -> str:
    return token if _DOTTED.fullmatch(token) else _unspelled(token, _DOTTED)


def _unspelled(token: str, literal: re.Pattern[str]) -> str:
    """What :func:`_spelled` made *token* of."""
    if token[:1] != "-":
        msg = f"{token[:32]!r} is no name"
        raise ItemError(msg)
    sigil = _SIGIL_OF.get(token[:_SIGIL_CHARS])
    if sigil is not None:
        if not literal.fullmatch(token, _SIGIL_CHARS):
            msg = f"{token[:32]!r} is no name after {sigil!r}"
            raise ItemError(msg)
        return f"{sigil}{token[_SIGIL_CHARS:]}"
    try:
        return from_any_base64(token[1:]).decode()
    except UnicodeDecodeError:
        msg = f"{token[:32]!r} holds no UTF-8"
        raise ItemError(msg) from None


#: Bytes of the member's name and equals sign in the baggage header.
MEMBER_OVERHEAD = len("antipode=")

#: The name of the baggage member.
MEMBER = "antipode"
