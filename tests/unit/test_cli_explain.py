"""`antipode explain`: a lineage for a person."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import Lineage, Promise, WriteId, serialize
from antipode_cli.main import main

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
POST = WriteId("posts", UUID, 1042, 490_003)
ROOT = Path(__file__).parents[2]


def explained(capsys: pytest.CaptureFixture[str], value: str) -> str:
    assert main(["explain", value]) == 0
    return capsys.readouterr().out


def test_each_write_is_a_line_with_its_hour(capsys: pytest.CaptureFixture[str]) -> None:
    """Datastore, log, position, and the hour as a date."""
    shown = explained(capsys, serialize(Lineage([POST])))
    assert "lineage of 1 write in " in shown
    assert f"posts  {UUID} @ 1042, written in the hour from 2025-11-24 19:00 UTC" in shown
    assert "complete as far as it knows" in shown


def test_covering_opaque_and_undated_entries_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """What is only a position, what has no order, and what has no date."""
    covering = WriteId("posts", UUID, 2042, 490_003, covering=True)
    shown = explained(capsys, serialize(Lineage([covering, WriteId("s3", "bucket/a b", "v1")])))
    assert "lineage of 1 write and 1 covering position" in shown
    assert "@ covering 2042" in shown
    assert "s3  bucket/a b @ 'v1', hour not known" in shown


def test_what_is_missing_comes_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Each mark says of whom, the word of the specification, and what it means."""
    lineage = Lineage([POST], incomplete=[("posts", "in_doubt"), ("", "egress"), ("s", "odd")])
    shown = explained(capsys, serialize(lineage))
    assert "; incomplete" in shown
    assert "posts  in_doubt: a write whose outcome was never learned" in shown
    assert "unknown source  egress: entries that were not allowed to leave" in shown
    assert "s  odd: a reason of a shim or application" in shown


def test_promises_branches_and_unknown_items_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """What will still come, and what a later version sent."""
    lineage = Lineage(
        promises=[Promise("queue", "0" * 32, 1_800_000_000)],
        open_branches=2,
        unknown=["Xnew", "7note", "z1.2~a"],
    )
    shown = explained(capsys, serialize(lineage))
    assert "promise 00000000000000000000000000000000, abandoned after 2027-01-15 08:00:00" in shown
    assert "2 still open" in shown
    assert "Xnew  of a later version, and may be a dependency" in shown
    assert "7note  of a later version, and no dependency" in shown
    assert "2~a  a lineage of version 2" in shown


def test_the_notes_of_a_dry_run_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The request and its guards, by region."""
    lineage = Lineage(
        unknown=["0r00000000000000aa", "0gZXU.kposts.a.log", "0g-.kposts.b.log", "0gbad"]
    )
    shown = explained(capsys, serialize(lineage))
    assert "request 00000000000000aa" in shown
    assert "guarded in region eu: posts:log@10" in shown
    assert "guarded in processes without a region: posts:log@11" in shown
    assert "0gbad  of a later version, and no dependency" in shown


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "  {}\n",
        '"{}"',
        "antipode={}",
        "userid=7, antipode={};ttl=1 ,other=x",
        "baggage: userid=7,antipode={}",
        "Antipode-Lineage: {}",
    ],
)
def test_texts_and_headers_are_taken_as_they_are_copied(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """A lineage, a baggage header, a response header, with names, quotes and blanks or without."""
    assert "posts  " in explained(capsys, form.format(serialize(Lineage([POST]))))


def test_several_members_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    """As a service that receives them does."""
    texts = [serialize(Lineage([POST])), serialize(Lineage([WriteId("users", "log", 1)]))]
    shown = explained(capsys, ",".join(f"antipode={text}" for text in texts))
    assert "2 members" in shown
    assert "lineage of 2 writes" in shown


def test_standard_input_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` takes what another program prints."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{serialize(Lineage([POST]))}\n"))
    assert "posts  " in explained(capsys, "-")


def test_an_empty_lineage_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The text `1` stands for a request that has done nothing yet."""
    assert "empty: nothing was written or seen" in explained(capsys, "1")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "the value is empty"),
        ("baggage: ", "the value is empty"),
        ("userid=7", "no member named antipode"),
        ("hello", "lineage_header"),
        ("1ai37~uPhH6R.posts.sy", "lineage_item"),
        ("1ai37~k a", "lineage_alphabet, at character 8 of 9"),
        ("1\x1b[31m", "lineage_alphabet"),
        ("1~" * 5000, "lineage_too_many"),
    ],
)
def test_what_is_no_lineage_is_2(capsys: pytest.CaptureFixture[str], value: str, why: str) -> None:
    """The error has the specification's code and shows the place, without raw control codes."""
    assert main(["explain", value]) == 2
    shown = capsys.readouterr()
    assert why in shown.err
    assert shown.out == ""
    assert "\x1b" not in shown.err


def test_the_references_example_is_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The example on the page is the program's own output."""
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    example = page.split("$ antipode explain ", 1)[1].split("```", 1)[0]
    value, _, output = example.partition("\n")
    assert explained(capsys, value) == output


WHOLE = serialize(
    Lineage(
        [POST, WriteId("s3", "bucket/a b", "v1")],
        incomplete=[("posts", "size")],
        promises=[Promise("queue", "0" * 32, 36**8 - 1)],
        unknown=["0r00000000000000aa", "0gZXU.kposts.a.log", "z1.2~a", "Xnew"],
    ),
    max_bytes=4096,
)


@given(
    st.text()
    | st.text("1az~.-_0gruki=,:; ")
    | st.builds(
        lambda at, put, cut: WHOLE[:at] + put + WHOLE[at + cut :],
        st.integers(0, len(WHOLE)),
        st.text(max_size=3),
        st.integers(0, 9),
    )
)
def test_any_text_is_explained_or_refused(value: str) -> None:
    """What somebody pastes is a lineage or is not; it is never a traceback."""
    quiet = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with quiet[0], quiet[1], mock.patch("sys.stdin", io.StringIO("1")):
        assert main(["explain", "--", value]) in {0, 2}
