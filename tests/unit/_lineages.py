"""Hypothesis strategies for lineages and for texts that may be some.

Names come from small pools as well as from all of Unicode, so that entries meet in one slot.
"""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from antipode import Lineage, Promise, WriteId
from antipode._lineage.grammar import MAX_EXPIRY, MAX_HOUR, MAX_VERSION, carried
from antipode.shim import Incomplete, encode

# Time is measured by tests of its own: a busy machine must not fail a property.
settings.register_profile("antipode", deadline=None)
settings.load_profile("antipode")

UUIDS = [str(uuid.UUID(int=number)) for number in (0, 1, 2**127 + 12345, 2**128 - 1)]
REPLICATION_IDS = ["0" * 40, "0123456789abcdef" * 2 + "89abcdef", "f" * 40]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"
DECODE_CODES = {
    "lineage_too_long",
    "lineage_alphabet",
    "lineage_header",
    "lineage_too_many",
    "lineage_item",
}

datastores = st.one_of(
    st.sampled_from(["a", "b", "posts", "-", "größe", "a.b", "😀", "@eu", "@", "~a"]),
    st.text(min_size=1),
)
keys = st.one_of(
    st.sampled_from(["k", "l", "", "-k", *UUIDS, *REPLICATION_IDS, UUIDS[2].upper()]),
    st.sampled_from(["0.1", "rs0.5", ".", "~us-east.3", "~", "~-a", "@a.b"]),
    st.builds(str.__add__, st.sampled_from(UUIDS), st.text(st.sampled_from("az09_/:.-"))),
    st.text(),
)
versions: st.SearchStrategy[int | str] = st.one_of(
    st.integers(0, 5),
    st.integers(0, MAX_VERSION),
    st.sampled_from(["", "5", "v1", "_", "-", "a.b"]),
    st.text(),
)
hours = st.one_of(st.sampled_from([0, 1, 499_999, 500_000]), st.integers(0, MAX_HOUR))
writes = st.builds(WriteId, datastores, keys, versions, hours, st.booleans())
#: Writes that meet all the time: where the rules of order are decided.
crowded = st.builds(
    WriteId,
    st.just("a"),
    st.sampled_from(["k", "l"]),
    st.one_of(st.integers(0, 3), st.sampled_from(["v", "w"])),
    st.sampled_from([0, 1, 2, 3]),
    st.booleans(),
)
marks = st.builds(
    Incomplete,
    st.one_of(st.sampled_from(["", "a", "posts"]), st.text()),
    st.one_of(st.sampled_from(["size", "in_doubt"]), st.text()),
)
promises = st.builds(
    Promise,
    datastores,
    st.sampled_from(["0" * 32, "0123456789abcdef" * 2, "f" * 32]),
    st.one_of(st.integers(0, 3), st.integers(0, MAX_EXPIRY)),
)
_kinds = st.sampled_from([kind for kind in ALPHABET if kind not in "~urkURKipohz"])
foreign_texts = st.builds(
    str.__add__, st.sampled_from("023456789"), st.text(st.sampled_from(ALPHABET), max_size=20)
)
unknown_items = st.one_of(
    st.builds(
        str.__add__, _kinds, st.text(st.sampled_from(ALPHABET.replace("~", "")), max_size=20)
    ),
    st.builds(carried, foreign_texts),
)


def lineages(
    of: st.SearchStrategy[WriteId] | None = None, *, max_size: int = 8
) -> st.SearchStrategy[Lineage]:
    """Lineages with something in any of their fields."""
    some: dict[str, Any] = {"max_size": 2}
    return st.builds(
        Lineage,
        st.lists(st.one_of(crowded, writes) if of is None else of, max_size=max_size),
        incomplete=st.lists(marks, **some),
        promises=st.lists(promises, **some),
        open_branches=st.one_of(st.integers(0, 3), st.integers(0, MAX_VERSION)),
        unknown=st.lists(unknown_items, **some),
    )


#: Lineages of few possible values, so that two of them are often equal.
twins = st.builds(
    Lineage,
    st.lists(crowded, max_size=3),
    incomplete=st.lists(st.just(Incomplete("a", "size")), max_size=1),
    open_branches=st.integers(0, 1),
)
_fields = st.one_of(
    st.sampled_from(
        [
            "",
            "-",
            "k",
            "a",
            "0",
            "5",
            "_v",
            "-YQ",
            "-YR",
            "-_w",
            "--w",
            "1-5",
            "-5",
            "A" * 22,
            "A" * 27,
        ]
    ),
    st.text(st.sampled_from(ALPHABET.replace("~", "").replace(".", "")), max_size=30),
)
_items = st.builds(
    lambda kind, fields: kind + ".".join(fields),
    st.sampled_from([*"urkURKipohz07X", ""]),
    st.lists(_fields, max_size=5),
)
#: Texts in the shape of lineages, right or wrong in every detail.
shaped = st.builds(
    lambda header, items: "~".join([header, *items]),
    st.sampled_from(["1", "1apsw", "11", "10", "2", ""]),
    st.lists(_items, max_size=5),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The text of a lineage with a few characters changed, lost, added or cut off."""
    text = encode(draw(lineages(max_size=4)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 3, len(text))))
        text = (
            text[:start] + draw(st.text(st.sampled_from(ALPHABET + "%é"), max_size=2)) + text[end:]
        )
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


texts = st.one_of(mutated(), shaped, st.text(st.sampled_from(ALPHABET)), st.text())
