"""The text form: total, canonical, linear, and short."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, LineageDecodeError, WriteId, deserialize, serialize
from antipode._lineage.codec import _around, _log
from antipode._lineage.grammar import MAX_FOREIGN, MAX_ITEMS, MAX_TEXT, foreign_of
from antipode.shim import decode, encode, is_of_writes
from tests.unit import _lineages as some

if TYPE_CHECKING:
    from collections.abc import Callable

many = some.lineages()
#: What a text of another version grows by, as it is carried: header, kind, count and dot.
FOREIGN_GROWTH = len("1~z1ek8.")


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
        assert len(canonical) <= len(text) + (0 if text[0] == "1" else FOREIGN_GROWTH)


@given(many, st.data())
def test_order_and_repetition_of_items_do_not_matter(lineage: Lineage, data: st.DataObject) -> None:
    """Items in any order and number stand for the same lineage."""
    header, *items = encode(lineage.without_unknown()).split("~")
    items += lineage.unknown
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
    (item,) = foreign.unknown
    assert foreign_of(item) == version + rest
    both = decode(encode(lineage.merge(foreign)))
    assert both.unknown == lineage.unknown | foreign.unknown
    assert set(both) == set(lineage)


@given(st.integers(0, 2**64 - 1))
def test_numbers(number: int) -> None:
    """Numbers are base 36 as every language's own library reads it."""
    item = encode(Lineage([WriteId("a", "k", number)])).split(".")[1]
    assert int(item, 36) == number
    assert item == item.lower()


@pytest.mark.parametrize(
    ("front", "behind"),
    [
        ("1~o", ""),
        ("1~ka.", ".k"),
        ("1apsw~ka.", "-5.k"),
        ("1~pa.", f".{'A' * 22}"),
        ("1~z", ".2"),
    ],
)
@pytest.mark.parametrize("digits", [14, 1_000, 60_000])
def test_giant_numbers(front: str, behind: str, digits: int) -> None:
    """A number of any length is refused, without being computed first."""
    with pytest.raises(LineageDecodeError, match="malformed") as caught:
        decode(f"{front}{'9' * digits}{behind}")
    assert caught.value.code == "lineage_item"


def test_limits_from_both_sides() -> None:
    """One more character or item than allowed is refused; as many as allowed are not."""
    longest = "1~x" + "a" * (MAX_TEXT - 3)
    assert encode(decode(longest)) == longest
    assert decoded(longest + "a") is None
    most = "1" + "~ka.5.k" * MAX_ITEMS
    assert encode(decode(most)) == "1~ka.5.k"
    assert decoded(most + "~ka.5.k") is None
    foreign = "2" * MAX_FOREIGN
    assert decode(encode(decode(foreign))) == decode(foreign)
    assert decoded(foreign + "2") is None


def test_offsets_point_at_the_item() -> None:
    """The error says where: at the first item that is malformed, whatever its kind."""
    for bad in ("ka.05.k", "isize", "o", "h", ""):
        with pytest.raises(LineageDecodeError) as caught:
            decode(f"1apsw~ka.5.k~{bad}~isize.posts")
        assert caught.value.offset == len("1apsw~ka.5.k~")


def test_a_text_must_be_a_str() -> None:
    """Bytes are a mistake of the caller, not an unreadable lineage."""
    with pytest.raises(TypeError):
        deserialize(b"1")  # type: ignore[arg-type]


FAMILIES: dict[str, Callable[[int], str]] = {
    "items": lambda n: "1" + "".join(f"~ka.5.k{i}" for i in range(n // 16)),
    "one log": lambda n: "1apsw" + "~ka.1-5.k" * (n // 16),
    "opaque": lambda n: "1" + "".join(f"~ka._{i}.k" for i in range(n // 16)),
    "marks": lambda n: "1" + "".join(f"~ir{i}.a" for i in range(n // 16)),
    "promises": lambda n: "1" + "".join(f"~pa{i}.5.{'A' * 22}" for i in range(n // 32)),
    "unknown": lambda n: "1" + "".join(f"~x{i}" for i in range(n // 16)),
    "one literal": lambda n: f"1~ka.5.{'k' * n}",
    "one base64": lambda n: f"1~ka.5.-{'YWFh' * (n // 4)}",
    "one bad base64": lambda n: f"1~ka.5.-A{'_' * n}",
    "one number": lambda n: f"1~ka.{'9' * n}.k",
    "dots": lambda n: f"1~k{'.' * n}",
    "dashes": lambda n: f"1~ka.5.{'-' * n}",
    "separators": lambda n: "1" + "~" * min(n, MAX_ITEMS),
    "header": lambda n: "1" + "a" * n,
    "foreign": lambda n: "2" + "~" * n,
    "carried": lambda n: "1" + "~z0.2" * min(n // 5, MAX_ITEMS),
    "carrying more than there is": lambda n: "1" + "~z9999.2" * min(n // 8, MAX_ITEMS),
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
    before = _around.cache_info().currsize, _log.cache_info().currsize
    for number in range(20):
        text = f"1~ka.5.{'k' * 1_000}{number}"
        assert encode(decode(text)) == text
    assert (_around.cache_info().currsize, _log.cache_info().currsize) == before


#: Entries of the stores with log names and positions as real servers give them.
HOUR = 498_000
ENTRIES = {
    "MySQL": WriteId("orders", "a1b2c3d4-0001-11f0-9c3a-0242ac110002", 48_211_907, HOUR),
    "MySQL, after a gap or in a group": WriteId(
        "orders", "a1b2c3d4-0001-11f0-9c3a-0242ac110002/48000001", 48_211_907, HOUR
    ),
    "MariaDB": WriteId("accounts", "0.101", 1_042_731, HOUR),
    "Redis": WriteId("sessions", "4f9d1f8e6b0c5a7d3e2f1a0b9c8d7e6f5a4b3c2d", 918_273_645, HOUR),
    "MongoDB": WriteId("posts", "rs0.5", 1_792_800_000 << 32 | 3, HOUR),
    "RabbitMQ": WriteId("events", "0198c5f2-7a31-7bcd-9e21-5a1b2c3d4e5f", 1_764, HOUR),
    "the embedded store": WriteId("carts", "6fa459ea-ee8a-4ca4-894e-db77e160355e", 73_001, HOUR),
    "a region's clock": WriteId("posts", "~us-east.3", 1_792_800_000_123, HOUR),
    "a group of datastores": WriteId("@checkout", "0.101", 1_042_731, HOUR),
}
FORMAT = (Path(__file__).parents[2] / "docs" / "spec" / "lineage-format.md").read_text("utf-8")


@pytest.mark.parametrize("store", ENTRIES)
def test_bytes_by_store(store: str) -> None:
    """The specification's table of bytes is what entries of these stores take, ``~`` included."""
    entry = Lineage([ENTRIES[store]])
    item = encode(entry).partition("~")[2]
    assert decode(encode(entry)) == entry
    assert f"| {store} | `{item}` | {len(item) + 1} |" in FORMAT


def test_entries_of_five_stores_fit_in_200_bytes() -> None:
    """One entry of each store, the member's name included."""
    stores = ("MySQL, after a gap or in a group", "MariaDB", "Redis", "MongoDB", "RabbitMQ")
    text = serialize(Lineage(ENTRIES[store] for store in stores))
    assert len(f"antipode={text}") <= 200


@pytest.mark.parametrize("store", ["a region's clock", "a group of datastores"])
def test_what_is_reserved_fits_in_40_bytes(store: str) -> None:
    """What later releases will write takes no more room than what this one does."""
    assert len(encode(Lineage([ENTRIES[store]])).partition("~")[2]) + 1 <= 40


def test_a_later_version_survives_a_hop() -> None:
    """A thousand characters of a version to come go on through a service of this one, whole."""
    later = f"2{'~kposts.1mi1gcpgeadc3.rs0.5' * 37}".ljust(1_000, "x")
    sent = serialize(deserialize(later))
    (item,) = deserialize(sent).unknown
    assert foreign_of(item) == later


def changed(text: str, changes: list[tuple[int, str, bool]]) -> str:
    """*text* with each of *changes*: a character put at a place, or in place of what is there."""
    for place, character, replaces in changes:
        at = place % (len(text) + 1)
        text = f"{text[:at]}{character}{text[at + replaces :]}"
    return text


@given(
    st.lists(st.tuples(st.sampled_from([*ENTRIES.values()]), st.integers(0, 50_000)), max_size=3),
    st.lists(st.tuples(st.integers(0), st.sampled_from(["", *some.ALPHABET]), st.booleans())),
)
def test_what_waits_to_be_decoded_is_a_lineage(
    entries: list[tuple[WriteId, int]], changes: list[tuple[int, str, bool]]
) -> None:
    """A text that is taken for writes by sight is never refused later, whatever it is made of."""
    writes = [replace(write, written_hour=HOUR - age) for write, age in entries]
    text = changed(encode(Lineage(writes)), changes)
    if is_of_writes(text):
        assert len(decode(text)) <= text.count("~")


@pytest.mark.parametrize("store", [name for name in ENTRIES if name.startswith(("M", "R", "the"))])
def test_the_usual_text_waits_to_be_decoded(store: str) -> None:
    """Entries as stores give them are known by sight, with an age, without an hour, with a tag."""
    entry = ENTRIES[store]
    others = [replace(entry, datastore="b", written_hour=hour) for hour in (0, HOUR - 40_000)]
    assert is_of_writes(encode(Lineage([entry, *others, WriteId("a", "k", "v-1", HOUR)])))
