"""Each format of the report: what a person or a program finds in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode_cli.report import FORMATS, RecordsError, load, render, report
from tests.unit._dry_run_files import (
    REQUEST,
    SAVE,
    SHOW,
    Recorder,
    entry,
    guarded,
    post_notification,
    save,
)

if TYPE_CHECKING:
    from antipode_cli.report import FailOn, Format, Report

DOCS = Path(__file__).parents[2] / "docs"
VOID = {"meta", "br", "rect"}


def found(folder: Path, *more: Recorder, fail_on: FailOn = "none") -> Report:
    return report(load([save(folder, [*post_notification(), *more])]), fail_on=fail_on)


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - the text is our own


def clean(folder: Path) -> Report:
    return report(load([guarded().save(folder)]))


def linted() -> Recorder:
    one = Recorder("dddddddddddd", "post-storage", "us")
    one.lint(0.015, SAVE, "in-transaction", detail="published to 'notifications'")
    return one


def test_text_is_the_write_the_read_the_fix_and_the_id(tmp_path: Path) -> None:
    """A person sees the lines to open, what to do there, and what it would have cost."""
    one = found(tmp_path)
    name = one.findings[0].id
    assert render(one, "text") == (
        f"{name} posts: read from a replica without waiting for the write"
        " (2 reads, 1 confirmed stale)\n"
        "  write storage/app.py:31 in save_post\n"
        "  read  notifier/app.py:48 in on_message\n"
        "  fix   antipode.barrier(timeout=..., only=['posts']) before notifier/app.py:48 in"
        " on_message\n"
        "  cost  a wait of 90 ms at the median, 110 ms at p99 (2 of 2 known)\n"
        "  test  tests/test_feed.py::test_shown\n"
        "\n"
        '  choice the 1 barrier above, or antipode.configure(barriers="auto") for about 100 ms a'
        " request at this lag (2 of 2 requests would wait, 2 known)\n"
        "        automatic barriers hold the reads of instrumented clients alone: effects that"
        ' leave the system, as an e-mail or a charge, need antipode.barrier(at="now") before'
        " them\n"
        "\n"
        "antipode: 1 missing barrier (2 requests of 2 processes,"
        " 2 reads of replicas with a write to see, datastores: posts)\n"
    )


def test_reads_that_automatic_barriers_guard_are_no_findings(tmp_path: Path) -> None:
    """They have their places and their cost, fail nothing, and what else may be read is named."""
    storage, notifier = post_notification()
    for line in notifier.lines:
        if line["kind"] == "read":
            line["verdict"] = "automatic"
    storage.write(0.02, SAVE, entry(1, "inbox"))
    one = report(load([save(tmp_path, [storage, notifier])]), fail_on="lint")
    assert not one.failed
    assert render(one, "text") == (
        "posts: guarded by an automatic barrier (2 reads, 1 stale without it)\n"
        "  write storage/app.py:31 in save_post\n"
        "  read  notifier/app.py:48 in on_message\n"
        "  cost  a wait of 90 ms at the median, 110 ms at p99 (2 of 2 known)\n"
        "  test  tests/test_feed.py::test_shown\n"
        "\n"
        "        automatic barriers hold the reads of instrumented clients alone: effects that"
        ' leave the system, as an e-mail or a charge, need antipode.barrier(at="now") before'
        " them\n"
        "\n"
        "not judged: inbox (written, but no read at a replica was recorded whose request depends"
        " on that: reads outside of a scope, and by clients that are not instrumented, are not"
        " recorded, and automatic barriers do not hold them either)\n"
        "antipode: no missing barrier, 2 reads guarded by automatic barriers (2 requests of 2"
        " processes, 2 reads of replicas with a write to see, datastores: inbox, posts)\n"
    )
    page = render(one, "html")
    assert "Guarded by automatic barriers</h2>" in page
    assert "2 reads, 1 stale without it" in page
    for format_ in ("junit", "github"):
        assert "on_message" not in render(one, format_)


def test_text_of_a_clean_run_is_one_line(tmp_path: Path) -> None:
    """Silence when clean, but for what was looked at."""
    text = render(clean(tmp_path), "text")
    assert text.count("\n") == 1
    assert text.startswith("antipode: no missing barrier (1 request of 1 process")


def test_text_has_lints_in_words(tmp_path: Path) -> None:
    """A lint says what it means, where, and what the recorder saw."""
    text = render(found(tmp_path, linted()), "text")
    assert "published or called out inside an open transaction" in text
    assert "  said  published to 'notifications'\n" in text
    assert "1 missing barrier, 1 lint" in text


def test_text_leaves_known_findings_out(tmp_path: Path) -> None:
    """What the baseline knows is counted and not repeated."""
    records = load([save(tmp_path, post_notification())])
    name = report(records).findings[0].id
    text = render(report(records, baseline=frozenset({name})), "text")
    assert name not in text
    assert "no missing barrier, 1 known by the baseline" in text


def test_json_has_every_field_that_the_reference_lists(tmp_path: Path) -> None:
    """Programs find each documented field, and the page misses none."""
    value = json.loads(render(found(tmp_path, linted()), "json"))
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    section = page.split("## JSON", 1)[1].split("\n## ", 1)[0]
    listed = set(re.findall(r"^\| `([a-z0-9_]+)`", section, flags=re.MULTILINE))
    keys = set(value) | set(value["records"])
    for one in (*value["findings"], *value["lints"]):
        keys |= set(one)
    keys |= set(value["findings"][0]["read"]) | set(value["findings"][0]["barrier_before"])
    assert keys == listed
    assert value["version"] == 1


def test_json_says_what_a_program_needs(tmp_path: Path) -> None:
    """The finding's places, its barrier and its waits, as values and not as sentences."""
    value = json.loads(render(found(tmp_path, fail_on="confirmed"), "json"))
    (one,) = value["findings"]
    assert (value["failed"], one["fails"], one["confirmed"]) == (True, True, True)
    assert one["read"] == {"file": "notifier/app.py", "function": "on_message", "lines": [48]}
    assert one["barrier_before"] == {
        "file": "notifier/app.py",
        "line": 48,
        "function": "on_message",
    }
    assert (one["wait_median_s"], one["waits_known"], one["reads"]) == (0.09, 2, 2)


@pytest.mark.parametrize(("fail_on", "kind"), [("unguarded", "failure"), ("none", "skipped")])
def test_junit_fails_where_it_is_asked_to(tmp_path: Path, fail_on: FailOn, kind: str) -> None:
    """A finding is a case of its own: failed by --fail-on, else skipped with its text."""
    root = parsed(render(found(tmp_path, fail_on=fail_on), "junit"))
    (suite,) = root
    (case,) = suite.findall("testcase")
    assert case.get("file") == "notifier/app.py"
    assert case.get("line") == "48"
    assert "storage/app.py:31" in (case.findtext(kind) or "")
    counted = {"failure": suite.get("failures"), "skipped": suite.get("skipped")}
    assert counted[kind] == "1"
    assert suite.get("tests") == "1"


def test_junit_of_a_clean_run_passes(tmp_path: Path) -> None:
    """There is one case, which passes: an empty suite is an error for many readers."""
    root = parsed(render(clean(tmp_path), "junit"))
    (case,) = root.iter("testcase")
    assert list(case) == []


@pytest.mark.parametrize(("fail_on", "level"), [("none", "warning"), ("unguarded", "error")])
def test_github_annotates_the_line_of_the_read(tmp_path: Path, fail_on: FailOn, level: str) -> None:
    """A command of one line, with everything in it that the format wants escaped."""
    first, last = render(found(tmp_path, fail_on=fail_on), "github").splitlines()
    assert first.startswith(f"::{level} file=notifier/app.py,line=48,title=Missing barrier u")
    assert "%0Afix: antipode.barrier(timeout=..., only=['posts']) before notifier/" in first
    assert last.startswith("antipode: 1 missing barrier")


def test_github_escapes_what_would_end_a_property(tmp_path: Path) -> None:
    """A file name cannot forge another property or command."""
    one = Recorder("aaaaaaaaaaaa")
    one.read(0, ("a,line=1:%\n::error::b.py", 3, "f"), entry(1))
    text = render(report(load([one.save(tmp_path)])), "github")
    assert "file=a%2Cline=1%3A%25\N{REPLACEMENT CHARACTER}%3A%3Aerror%3A%3Ab.py,line=3," in text
    assert len(text.splitlines()) == 2


class Page(HTMLParser):
    """A page's elements, where each that begins also ends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_html_fetches_nothing_and_runs_nothing(tmp_path: Path) -> None:
    """The page is whole in itself: no address, no script, and a policy that forbids both."""
    text = render(found(tmp_path, linted()), "html")
    page = Page(text)
    assert not re.search(r"https?:|url\(|@import|javascript:", text)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert ("meta", "default-src 'none'; style-src 'unsafe-inline'") in [
        (tag, attributes.get("content")) for tag, attributes in page.elements
    ]


def test_html_links_lead_to_what_is_there(tmp_path: Path) -> None:
    """Sections and findings have ids of their own, and every link names one of them."""
    page = Page(render(found(tmp_path, linted()), "html"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert len(ids) == len(set(ids))
    assert links
    assert {str(link).removeprefix("#") for link in links} <= set(ids)


def test_html_shows_one_request_across_services(tmp_path: Path) -> None:
    """The confirmed request, a column for each service, its events in the order of time."""
    text = render(found(tmp_path), "html")
    page = Page(text)
    assert f"Request {REQUEST} , by each" in page.text
    table = text.split("<table>")[1].split("</table>")[0]
    assert re.findall(r'<th scope="col">([^<]*)<', table) == [
        "after",
        "post-storage (us)",
        "notifier (eu)",
    ]
    events = re.findall(r'class="event (\w+)"', table)
    assert events == ["scope", "write", "scope", "advice", "unguarded", "evidence"]
    assert table.count('<span class="badge mark">1</span>') == 3
    assert "The numbers stand for these writes: posts:log-1@10" in page.text
    assert "the read was stale; its write was visible 90 ms after it" in page.text


def test_html_shows_the_distribution_of_waits(tmp_path: Path) -> None:
    """A chart with a bar for each range, in words for those who cannot see it."""
    page = Page(render(found(tmp_path), "html"))
    (chart,) = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert chart["role"] == "img"
    assert chart["aria-label"] == "50 ms to 100 ms: 1 read; 100 ms to 200 ms: 1 read"
    assert "median 90 ms, p99 110 ms, longest 110 ms" in page.text


def test_html_is_for_keyboards_phones_and_dark_rooms(tmp_path: Path) -> None:
    """What can be opened or scrolled takes the focus; width and colours follow the reader's."""
    text = render(found(tmp_path), "html")
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("summary") == tags.count("details") == 1
    assert [a["tabindex"] for _, a in page.elements if "tabindex" in a] == ["0"]
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 45rem" in text
    assert ("html", {"lang": "en"}) in page.elements


def test_html_of_a_clean_run_says_so(tmp_path: Path) -> None:
    """No finding, no request, no chart: a sentence."""
    page = Page(render(clean(tmp_path), "html"))
    assert "Every read that needed a barrier had one." in page.text
    assert "svg" not in [tag for tag, _ in page.elements]


HOSTILE = "<script>alert('1')</script>&\"\x00\x1b[31m\ud800"


@pytest.mark.parametrize("wanted", FORMATS)
def test_names_from_outside_stay_names(tmp_path: Path, wanted: Format) -> None:
    """Files, functions, services and tests are text wherever they stand."""
    one = Recorder("aaaaaaaaaaaa", service=HOSTILE, region=HOSTILE, test=HOSTILE)
    one.scope(0)
    one.write(0.1, (HOSTILE, 1, HOSTILE), entry(1, HOSTILE, HOSTILE))
    one.read(0.2, (HOSTILE, 2, HOSTILE), entry(1, HOSTILE, HOSTILE))
    one.lint(0.3, (HOSTILE, 3, HOSTILE), HOSTILE, detail=HOSTILE)
    text = render(report(load([one.save(tmp_path)])), wanted)
    text.encode()
    if wanted == "html":
        assert "script" not in [tag for tag, _ in Page(text).elements]
    elif wanted == "junit":
        parsed(text)
    elif wanted == "json":
        assert json.loads(text)["findings"][0]["read"]["function"].startswith("<script>")
    assert not re.search("[\x00\x1b]", text)


@pytest.mark.parametrize("wanted", FORMATS)
def test_a_cut_off_line_is_no_reason_to_fail(tmp_path: Path, wanted: Format) -> None:
    """The whole lines are reported; html and json say what was left out."""
    folder = save(tmp_path, post_notification())
    path = Recorder("ffffffffffff").save(folder)
    path.write_text(path.read_text(encoding="utf-8") + '{"v": 1, "ki', encoding="utf-8")
    text = render(report(load([folder])), wanted)
    assert ("ends inside a line" in text) == (wanted in {"html", "json"})


def test_a_read_without_evidence_has_no_cost(tmp_path: Path) -> None:
    """Without a replica to look at nobody knows what a wait costs, and nothing is made up."""
    one = Recorder("aaaaaaaaaaaa")
    one.read(0, SHOW, entry(1))
    found = report(load([one.save(tmp_path)]))
    assert "cost" not in render(found, "text")
    assert "not known: no evidence was followed" in render(found, "html")
    assert json.loads(render(found, "json"))["findings"][0]["wait_p99_s"] is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
LINES = [line for one in (*post_notification(), linted(), guarded()) for line in one.lines]
FIELDS = sorted({field for line in LINES for field in line})


@given(line=st.sampled_from(LINES), field=st.sampled_from(FIELDS), value=VALUES)
def test_whatever_a_line_has_is_reported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, line: dict[str, Any], field: str, value: Any
) -> None:
    """No value of any field makes a report fail: the line is read, or its file refused."""
    path = tmp_path_factory.getbasetemp() / "one.jsonl"
    path.write_text(f"{json.dumps(line | {field: value})}\n", encoding="utf-8")
    try:
        found = report(load([path]))
    except RecordsError:
        return
    for wanted in FORMATS:
        assert render(found, wanted)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"v": 1' + "0" * 10_000 + "}"])
def test_a_line_that_is_too_deep_or_too_long_is_refused(tmp_path: Path, text: str) -> None:
    """What no reader of JSON takes is no record either."""
    path = tmp_path / "other.jsonl"
    path.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(RecordsError):
        load([path])
