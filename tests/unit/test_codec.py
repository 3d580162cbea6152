"""The text form: total, canonical, linear, and short."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, LineageDecodeError, WriteId, deserialize, serialize
from antipode._lineage.codec import _prefix, _unprefix
from antipode._lineage.grammar import MAX_FOREIGN, MAX_ITEMS, MAX_TEXT
from antipode.shim import decode, encode
from tests.unit import _lineages as some

if TYPE_CHECKING:
    from collections.abc import Callable

many = some.lineages()
#: Longest growth that a canonical text has over the text it was decoded from.
FOREIGN_GROWTH = 4 / 3


def decoded(text: str) -> Lineage | None:
    """What *text* stands for; None where it is refused as the specification says."""
    refused: LineageDecodeError
    try:
        return decode(text)
    except LineageDecodeError as error:
        refused = error
    assert refused.code in some.DECODE_CODES
    assert 0 <= refused.offset <= len(text)
    return None


@given(many)
def test_round_trip(lineage: Lineage) -> None:
    """Every lineage, of any text in any field, comes back from its own text."""
    assert decode(encode(lineage)) == lineage


@given(many)
def test_alphabet(lineage: Lineage) -> None:
    """The text is made of what every SDK's baggage leaves as it is."""
    assert re.fullmatch(r"1[A-Za-z0-9._~-]*", encode(lineage))


@given(some.twins, some.twins)
def test_canonical(one: Lineage, other: Lineage) -> None:
    """Lineages are equal exactly if their texts are."""
    assert (one == other) is (encode(one) == encode(other))


@given(some.texts)
def test_total(text: str) -> None:
    """Any text decodes, or is refused with a code; nothing else is ever raised."""
    decoded(text)


@given(many)
def test_every_truncation(lineage: Lineage) -> None:
    """A text that was cut off anywhere decodes or is refused with a code."""
    text = encode(lineage)
    for end in range(len(text)):
        decoded(text[:end])


@given(some.texts)
def test_normalisation(text: str) -> None:
    """Encoding what was decoded gives a text that stays as it is, and is hardly ever longer."""
    lineage = decoded(text)
    if lineage is not None:
        canonical = encode(lineage)
        assert decode(canonical) == lineage
        assert len(canonical) <= max(len(text), len(text) * FOREIGN_GROWTH + len("1~z") + 1)
        if text[0] == "1":
            assert len(canonical) <= len(text)


@given(many, st.data())
def test_order_and_repetition_of_items_do_not_matter(lineage: Lineage, data: st.DataObject) -> None:
    """Items in any order and number stand for the same lineage."""
    header, *items = encode(lineage).split("~")
    shuffled = data.draw(st.permutations([*items, *items]))
    assert decode("~".join([header, *shuffled])) == lineage


@given(many, st.text(st.sampled_from(some.ALPHABET.replace("~", ""))))
def test_an_hmac_behind_the_items_is_ignored(lineage: Lineage, hmac: str) -> None:
    """A sender may authenticate its text before we know how to check that."""
    assert decode(f"{encode(lineage)}~h{hmac}") == lineage


@given(many, st.sampled_from("023456789"), st.text(st.sampled_from(some.ALPHABET)))
def test_another_version_is_carried_along(lineage: Lineage, version: str, rest: str) -> None:
    """A text of another major version travels on beside our own, and both stay whole."""
    foreign = decode(version + rest)
    assert len(foreign.unknown) == 1
    both = decode(encode(lineage.merge(foreign)))
    assert both.unknown == lineage.unknown | foreign.unknown
    assert set(both) == set(lineage)


@given(st.integers(0, 2**64 - 1))
def test_numbers(number: int) -> None:
    """Numbers are base 36 as every language's own library reads it."""
    item = encode(Lineage([WriteId("a", "k", number)])).rpartition(".")[2]
    assert int(item, 36) == number
    assert item == item.lower()


@pytest.mark.parametrize("kind", ["o", "kk.a.", "apsw~kk.a.5.", f"p{'A' * 22}a."])
@pytest.mark.parametrize("digits", [14, 1_000, 60_000])
def test_giant_numbers(kind: str, digits: int) -> None:
    """A number of any length is refused, without being computed first."""
    with pytest.raises(LineageDecodeError, match="malformed") as caught:
        decode(
            f"1~{kind}{'9' * digits}" if not kind.startswith("apsw") else f"1{kind}{'9' * digits}"
        )
    assert caught.value.code == "lineage_item"


def test_limits_from_both_sides() -> None:
    """One more character or item than allowed is refused; as many as allowed are not."""
    longest = "1~x" + "a" * (MAX_TEXT - 3)
    assert encode(decode(longest)) == longest
    assert decoded(longest + "a") is None
    most = "1" + "~kk.a.5" * MAX_ITEMS
    assert encode(decode(most)) == "1~kk.a.5"
    assert decoded(most + "~kk.a.5") is None
    foreign = "2" * MAX_FOREIGN
    assert decode(encode(decode(foreign))) == decode(foreign)
    assert decoded(foreign + "2") is None


def test_offsets_point_at_the_item() -> None:
    """The error says where: at the first item that is malformed, whatever its kind."""
    for bad in ("kk.a.05", "iposts", "o", "h", ""):
        with pytest.raises(LineageDecodeError) as caught:
            decode(f"1apsw~kk.a.5~{bad}~iposts.size")
        assert caught.value.offset == len("1apsw~kk.a.5~")


def test_a_text_must_be_a_str() -> None:
    """Bytes are a mistake of the caller, not an unreadable lineage."""
    with pytest.raises(TypeError):
        deserialize(b"1")  # type: ignore[arg-type]


FAMILIES: dict[str, Callable[[int], str]] = {
    "items": lambda n: "1" + "".join(f"~kk{i}.a.5" for i in range(n // 16)),
    "one log": lambda n: "1apsw" + "~kk.a.5.1" * (n // 16),
    "opaque": lambda n: "1" + "".join(f"~kk.a._{i}" for i in range(n // 16)),
    "marks": lambda n: "1" + "".join(f"~ia.r{i}" for i in range(n // 16)),
    "promises": lambda n: "1" + "".join(f"~p{'A' * 22}a{i}.5" for i in range(n // 32)),
    "unknown": lambda n: "1" + "".join(f"~x{i}" for i in range(n // 16)),
    "one literal": lambda n: f"1~k{'k' * n}.a.5",
    "one base64": lambda n: f"1~k-{'YWFh' * (n // 4)}.a.5",
    "one bad base64": lambda n: f"1~k-{'_' * n}.a.5",
    "one number": lambda n: f"1~kk.a.{'9' * n}",
    "dots": lambda n: f"1~k{'.' * n}",
    "dashes": lambda n: f"1~k{'-' * n}.a.5",
    "separators": lambda n: "1" + "~" * min(n, MAX_ITEMS),
    "header": lambda n: "1" + "a" * n,
    "foreign": lambda n: "2" + "~" * n,
    "bad character behind": lambda n: "1~k" + "a" * n + "!",
}


def seconds(text: str) -> float:
    """The least processor time that decoding, and encoding what comes out, took."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        lineage = decoded(text)
        if lineage is not None:
            encode(lineage)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("family", FAMILIES)
def test_linear_time(family: str) -> None:
    """Sixteen times the length costs about sixteen times the time; a square would be 256."""
    small, large = (FAMILIES[family](length) for length in (3_000, 48_000))
    assert seconds(large) <= 80 * max(seconds(small), 20e-6)


def test_senders_do_not_fill_our_memory() -> None:
    """Long names from outside are not kept in caches."""
    before = _prefix.cache_info().currsize, _unprefix.cache_info().currsize
    for number in range(20):
        text = f"1~k{'k' * 1_000}{number}.a.5"
        assert encode(decode(text)) == text
    assert (_prefix.cache_info().currsize, _unprefix.cache_info().currsize) == before


def test_five_log_entries_fit_in_250_bytes() -> None:
    """UUIDs, replication ids, the stores' names and positions of real size, name included."""
    lineage = Lineage(
        [
            WriteId("post-storage", "a1b2c3d4-0001-11f0-9c3a-0242ac110002", 48_211_907, 499_987),
            WriteId(
                "user-timeline", "4f9d1f8e6b0c5a7d3e2f1a0b9c8d7e6f5a4b3c2d", 918_273_645, 500_000
            ),
            WriteId(
                "social-graph", "9e107d9d372bb6826bd81d3542a419d6e4d909c2", 10_442_731, 499_999
            ),
            WriteId("media", "6fa459ea-ee8a-3ca4-894e-db77e160355e", 73_001, 499_998),
            WriteId("notifier", "886313e1-3b8a-5372-9b90-0c9aee199e5d", 62_113, 500_000, True),  # noqa: FBT003
        ]
    )
    text = serialize(lineage)
    assert decode(text) == lineage
    assert len(f"antipode={text}") <= 250
