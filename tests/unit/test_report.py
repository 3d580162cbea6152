"""What the records of a dry run amount to: findings, their ids, and where a barrier belongs."""

from __future__ import annotations

import hashlib
import json
from html import unescape
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

import antipode
from antipode import WriteId
from antipode.shim import floor, record_write
from antipode_cli.report import (
    Finding,
    RecordsError,
    Report,
    baseline_text,
    load,
    read_baseline,
    render,
    report,
    summary,
)
from antipode_testing import FakeStore, VirtualClock
from tests.unit._dry_run_files import (
    OTHER_REQUEST,
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
    from antipode_cli.report import FailOn

ROOT = Path(__file__).parents[2]


def reported(folder: Path, *recorders: Recorder) -> Report:
    return report(load([save(folder, recorders)]))


def finding_of(found: Report, function: str) -> Finding:
    (one,) = [one for one in found.findings if one.read.function == function]
    return one


def test_these_tests_use_records_of_the_specification() -> None:
    """Each line that is built here is one that the JSON Schema of the records allows."""
    schema = json.loads((ROOT / "docs/spec/dry-run-record.schema.json").read_text(encoding="utf-8"))
    judge = jsonschema.Draft202012Validator(schema)
    storage, notifier = post_notification()
    notifier.lint(3, SHOW, "after-response", detail="late")
    storage.message(3, SAVE, "queue")
    storage.call(3, SAVE, "other:80")
    storage.rule(3, "posts=mysql://db:3306/app", matched=True)
    storage.rule(3, "users=mysql://db:3306", matched=False)
    notifier.message(3, None, "queue")
    lines = [*storage.lines, *notifier.lines, *guarded().lines]
    assert [error.message for line in lines for error in judge.iter_errors(line)] == []
    assert {line["kind"] for line in lines} == set(schema["properties"]["kind"]["enum"])


def test_reads_are_joined_with_the_writes_of_other_processes(tmp_path: Path) -> None:
    """The finding names the write's place in one service and the read's in another."""
    (one,) = reported(tmp_path, *post_notification()).findings
    assert str(one.write) == "storage/app.py:31 in save_post"
    assert str(one.read) == "notifier/app.py:48 in on_message"
    assert (one.datastore, one.reads, one.confirmed) == ("posts", 2, 1)
    assert one.services == ("notifier (eu)",)
    assert one.tests == ("tests/test_feed.py::test_shown",)


def test_the_id_is_that_of_the_specification(tmp_path: Path) -> None:
    """Anybody can compute it, and lines are not part of it."""
    text = "unguarded\nposts\nnotifier/app.py\non_message\nstorage/app.py\nsave_post\n"
    (one,) = reported(tmp_path, *post_notification()).findings
    assert one.id == f"u{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def test_the_id_survives_edits_elsewhere_in_the_file(tmp_path: Path) -> None:
    """Reads at several lines of one function are one finding, which lists the lines."""
    first = reported(tmp_path / "before", *post_notification())
    moved = Recorder("dddddddddddd")
    moved.write(0, SAVE, entry(5))
    moved.read(1, (SHOW[0], 99, SHOW[2]), entry(5))
    both = reported(tmp_path / "after", *post_notification(), moved)
    assert [one.id for one in both.findings] == [one.id for one in first.findings]
    assert both.findings[0].read.lines == (48, 99)


def test_a_write_that_nobody_recorded_has_no_place(tmp_path: Path) -> None:
    """A service without a dry run may have written it; the read is told of all the same."""
    one = Recorder("aaaaaaaaaaaa")
    one.read(0, SHOW, entry(1))
    (found,) = reported(tmp_path, one).findings
    text = "unguarded\nposts\nnotifier/app.py\non_message\n\n\n"
    assert found.id == f"u{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    assert "no record names it" in str(found.write)


def test_one_read_of_two_writes_is_two_findings_guarded_together(tmp_path: Path) -> None:
    """Each missing write has a finding of its own; one barrier is enough for both."""
    one = Recorder("aaaaaaaaaaaa")
    one.write(0, SAVE, entry(1, log="a"))
    one.write(1, ("app.py", 2, "save_photo"), entry(1, log="b"))
    one.read(2, SHOW, entry(1, log="a"), entry(1, log="b"))
    found = reported(tmp_path, one).findings
    assert {finding.write.function for finding in found} == {"save_post", "save_photo"}
    assert {frozenset(finding.advice.guards) for finding in found} == {
        frozenset(finding.id for finding in found)
    }


def test_the_requests_own_write_comes_first(tmp_path: Path) -> None:
    """Stores that start anew for each test mint equal positions: requests tell them apart."""
    one = Recorder("aaaaaaaaaaaa")
    one.write(0, ("app.py", 1, "mine"), entry(1))
    one.write(1, ("app.py", 2, "of_another"), entry(1), request=OTHER_REQUEST)
    one.read(2, SHOW, entry(1))
    (found,) = reported(tmp_path, one).findings
    assert found.write.function == "mine"


def test_a_write_of_an_earlier_request_is_found(tmp_path: Path) -> None:
    """A lineage that was stored beside a value names writes of other requests."""
    writer, reader = Recorder("aaaaaaaaaaaa"), Recorder("bbbbbbbbbbbb")
    writer.write(0, SAVE, entry(1), request=OTHER_REQUEST)
    reader.read(1, SHOW, entry(1))
    (found,) = reported(tmp_path, writer, reader).findings
    assert found.write.function == "save_post"


def test_guarded_reads_are_no_finding(tmp_path: Path) -> None:
    """With its barrier in place a program is clean, in one line that counts what was seen."""
    found = reported(tmp_path, guarded())
    assert found.findings == ()
    assert summary(found) == (
        "antipode: no missing barrier (1 request of 1 process, "
        "1 read of replicas with a write to see, datastores: posts)"
    )


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    """Any order of the same files gives the same report, and files given twice count once."""
    storage, notifier = post_notification()
    paths = [one.save(tmp_path) for one in (storage, notifier, guarded())]
    texts = {
        render(report(load([*order, order[0], tmp_path])), "json") for order in permutations(paths)
    }
    assert len(texts) == 1


def feed() -> tuple[Recorder, Recorder]:
    """A reader of two datastores, written before the request reached it."""
    writer, reader = Recorder("aaaaaaaaaaaa"), Recorder("bbbbbbbbbbbb")
    writer.write(0.0, ("w.py", 1, "save_user"), entry(1, "users"))
    writer.write(0.1, ("w.py", 2, "save_post"), entry(1, "posts"))
    reader.scope(0.2)
    reader.read(0.3, ("r.py", 10, "user"), entry(1, "users"))
    reader.read(0.4, ("r.py", 20, "post"), entry(1, "posts"))
    return writer, reader


def test_one_barrier_before_the_first_read_guards_its_siblings(tmp_path: Path) -> None:
    """What had come in by the first read need not be waited for twice."""
    found = reported(tmp_path, *feed())
    user, post = finding_of(found, "user"), finding_of(found, "post")
    assert str(user.advice.before) == str(post.advice.before) == "r.py:10 in user"
    assert user.advice.guards == (user.id, post.id)
    assert post.advice.guards == (post.id, user.id)
    assert post.advice.datastores == ("posts", "users")


def test_the_summary_counts_barriers(tmp_path: Path) -> None:
    """Two findings that one barrier guards are one missing barrier."""
    found = reported(tmp_path, *feed())
    assert found.barriers == 1
    assert summary(found).startswith("antipode: 1 missing barrier for 2 findings (")


def test_a_barrier_stands_after_what_it_waits_for(tmp_path: Path) -> None:
    """What the process itself writes between two reads, a barrier before the first cannot guard."""
    writer, reader = feed()
    reader.write(0.5, ("r.py", 30, "save_like"), entry(1, "likes"))
    reader.read(0.6, ("r.py", 40, "like"), entry(1, "likes"))
    found = reported(tmp_path, writer, reader)
    like, user = finding_of(found, "like"), finding_of(found, "user")
    assert str(like.advice.before) == "r.py:40 in like"
    assert like.advice.guards == (like.id,)
    assert like.id not in user.advice.guards


def test_what_a_response_brought_is_not_guarded_before_it(tmp_path: Path) -> None:
    """A callee wrote it after the first read: the barrier goes before the first read after that."""
    writer, reader = feed()
    writer.write(0.35, ("w.py", 3, "save_like"), entry(1, "likes"))
    reader.read(0.6, ("r.py", 40, "like"), entry(1, "likes"))
    found = reported(tmp_path, writer, reader)
    like, post = finding_of(found, "like"), finding_of(found, "post")
    assert str(like.advice.before) == "r.py:20 in post"
    assert like.advice.guards == (like.id, post.id)
    assert str(post.advice.before) == "r.py:10 in user"


def test_a_barrier_guards_the_reads_of_its_own_scope(tmp_path: Path) -> None:
    """A consumer of two messages of one request needs a barrier for each."""
    writer, reader = feed()
    reader.scope(0.5)
    reader.read(0.6, ("r.py", 60, "second_message"), entry(1, "users"))
    found = reported(tmp_path, writer, reader)
    second = finding_of(found, "second_message")
    assert str(second.advice.before) == "r.py:60 in second_message"
    assert second.advice.guards == (second.id,)


def test_a_later_write_to_the_same_store_needs_a_barrier_of_its_own(tmp_path: Path) -> None:
    """A read lists all that its datastore still lacks: what is not in the list had not come in."""
    writer, reader = feed()
    reader.read(0.5, ("r.py", 50, "again"), entry(2, "users"))
    found = reported(tmp_path, writer, reader)
    assert str(finding_of(found, "again").advice.before) == "r.py:50 in again"


def test_reads_of_other_requests_are_no_siblings(tmp_path: Path) -> None:
    """A barrier is of one request; the same functions in another need it there."""
    one = Recorder("aaaaaaaaaaaa")
    one.write(0, SAVE, entry(1))
    one.read(1, ("r.py", 1, "first"), entry(1))
    one.write(2, SAVE, entry(2), request=OTHER_REQUEST)
    one.read(3, ("r.py", 2, "second"), entry(2), request=OTHER_REQUEST)
    found = reported(tmp_path, one)
    assert [one.advice.guards for one in found.findings] == [(one.id,) for one in found.findings]


def test_the_cost_is_what_evidence_measured(tmp_path: Path) -> None:
    """Median and 99th percentile of the known waits, and how many were known."""
    one = Recorder("aaaaaaaaaaaa")
    one.write(0, SAVE, entry(1))
    for number in range(101):
        read = one.read(1, SHOW, entry(1))
        one.evidence(2, read, None if number == 100 else (number + 1) / 1000, stale=number == 0)
    (found,) = reported(tmp_path, one).findings
    cost = found.cost
    assert (cost.median_s, cost.p99_s, cost.known, cost.reads) == (0.050, 0.099, 100, 101)
    assert found.confirmed == 1


def test_lints_are_grouped_by_place(tmp_path: Path) -> None:
    """The same lint at the same place is one, with an id that anybody can compute."""
    one = Recorder("aaaaaaaaaaaa")
    for number in range(3):
        one.lint(0, ("app.py", 7 + number, "save"), "unscoped-write", detail="no scope")
    (lint,) = reported(tmp_path, one).lints
    text = "lint\nunscoped-write\nposts\napp.py\nsave\n"
    assert lint.id == f"l{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    assert (lint.count, lint.place.lines, lint.details) == (3, (7, 8, 9), ("no scope",))


def stale_fresh_lint(folder: Path) -> Path:
    """One finding that is confirmed, one that is not, and a lint."""
    one = Recorder("eeeeeeeeeeee")
    one.write(0, SAVE, entry(1))
    one.read(1, ("r.py", 1, "fresh"), entry(1))
    one.lint(2, ("r.py", 2, "barrier"), "nothing-to-wait-for")
    return save(folder, [*post_notification(), one])


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [("none", 0), ("confirmed", 1), ("unguarded", 2), ("lint", 3)],
)
def test_each_level_fails_on_more(tmp_path: Path, fail_on: FailOn, failing: int) -> None:
    """None, confirmed, unguarded, lint: each has the one before it in it."""
    found = report(load([stale_fresh_lint(tmp_path)]), fail_on=fail_on)
    failed = [*filter(found.fails, found.findings), *filter(found.fails, found.lints)]
    assert len(failed) == failing
    assert found.failed == bool(failing)


def test_what_the_baseline_knows_never_fails(tmp_path: Path) -> None:
    """A baseline of everything found makes the same records clean; nothing else is hidden."""
    records = load([stale_fresh_lint(tmp_path / "records")])
    baseline = tmp_path / "baseline.txt"
    baseline.write_text(baseline_text(report(records)), encoding="utf-8")
    found = report(records, baseline=read_baseline(baseline), fail_on="lint")
    assert not found.failed
    assert (found.new, found.new_lints, found.gone) == ((), (), ())
    assert "3 known by the baseline" in summary(found)


def test_what_the_baseline_has_too_much_is_named(tmp_path: Path) -> None:
    """An id that no record shows any more can leave the baseline."""
    found = report(load([guarded().save(tmp_path)]), baseline=frozenset({"u00000000"}))
    assert found.gone == ("u00000000",)


def test_a_baseline_has_no_lines_of_files(tmp_path: Path) -> None:
    """It does not change with every edit, and reads the same in any order of the records."""
    text = baseline_text(report(load([stale_fresh_lint(tmp_path)])))
    ids = [line.split()[0] for line in text.splitlines() if not line.startswith("#")]
    assert ids == sorted(ids)
    assert len(ids) == 3
    assert "storage/app.py in save_post" in text


def test_a_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    """A crash loses at most the last record, and the report says whose."""
    path = guarded().save(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    records = load([path])
    assert records.truncated == (str(path),)
    assert [line.kind for line in records.lines] == ["process", "scope", "write", "barrier"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello\n", "no JSON object"),
        ("hello", "no JSON object"),
        ("[1]\n", "no JSON object"),
        ('{"a": 1}\n', "it has no 'v'"),
        ('{"v": 2}\n', "its version is 2"),
        ('{"v": 1, "kind": "read", "t": 0, "process": "a", "n": 0}\n', "it has no 'writes'"),
        ('{"v": 1, "kind": 1, "t": 0, "process": "a", "n": 0}\n', "1 is no text"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """The error names file, line and reason; nothing passes as records without findings."""
    path = tmp_path / "other.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordsError, match=rf"other\.jsonl:1 .*{why}"):
        load([path])


def test_a_broken_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    """Only a last line may be cut off: anything else is no crash, and may have been a finding."""
    path = guarded().save(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:30], *lines[3:]]), encoding="utf-8")
    with pytest.raises(RecordsError, match=r":3 is no record"):
        load([path])


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    """A run that recorded nothing must not pass as a run without findings."""
    with pytest.raises(RecordsError, match="ANTIPODE_DRY_RUN_DIR"):
        load([tmp_path])


def test_fields_and_kinds_of_later_versions_are_ignored(tmp_path: Path) -> None:
    """What readers do not know is no error."""
    one = guarded()
    one.add("new-kind", 1, request=REQUEST, colour="blue")
    one.lines[1]["more"] = {"a": 1}
    assert len(load([one.save(tmp_path)]).lines) == len(one.lines)


@pytest.mark.parametrize("text", ["hello\n", "u123\n", '{"version": 1}\n'])
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    """A wrong file as baseline is an error, in place of hiding nothing or everything."""
    path = tmp_path / "baseline"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordsError, match="no line of a baseline"):
        read_baseline(path)


def read_in(store: FakeStore) -> None:
    floor(store)


def test_what_the_recorder_writes_is_read(tmp_path: Path) -> None:
    """A dry run of this very process: the finding names the functions above, and its request."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    store = FakeStore("posts", VirtualClock(), reads_from="replica")
    antipode.shim.register(store)
    with antipode.scope():
        record_write(WriteId("posts", "log", 1, 500_000))
        read_in(store)
        antipode.barrier(timeout=1)
        read_in(store)
    found = report(load([tmp_path]))
    (one,) = found.findings
    assert one.advice.call == "antipode.barrier(timeout=..., only=['posts'])"
    assert (one.read.function, one.reads) == ("read_in", 1)
    assert one.write.function == "test_what_the_recorder_writes_is_read"
    assert one.read.file == one.write.file
    assert [line.verdict for line in found.records.lines if line.kind == "read"] == [
        "unguarded",
        "guarded",
    ]
    assert len(one.tests) == 1


def test_the_advice_is_a_barrier_on_what_is_read(tmp_path: Path) -> None:
    """What else the request depends on, as a queue that its process has no client of, is not."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    store = FakeStore("posts", VirtualClock(), reads_from="replica")
    antipode.shim.register(store)
    with antipode.scope():
        antipode.append(WriteId("queue", "log", 1, 500_000))
        record_write(WriteId("posts", "log", 1, 500_000))
        read_in(store)
    found = report(load([tmp_path]))
    (one,) = found.findings
    assert one.advice.call == "antipode.barrier(timeout=..., only=['posts'])"
    for format_ in ("text", "html", "github"):
        shown = unescape(render(found, format_))
        assert one.advice.call in shown
    assert json.loads(render(found, "json"))["findings"][0]["barrier_datastores"] == ["posts"]


def test_automatic_barriers_cost_the_longest_wait_of_each_request(tmp_path: Path) -> None:
    """While one read of a request waits, time passes for its others; half wait for none."""
    storage, notifier = post_notification()  # Waits of 90 and 110 ms, in two requests.
    again = notifier.read(0.2, SHOW, entry(10))
    notifier.evidence(0.3, again, 0.030, stale=True)
    other = Recorder("eeeeeeeeeeee")
    for each in range(2):
        other.scope(each, opened="here", request=f"00000000000000c{each}")
    found = reported(tmp_path, storage, notifier, other).automatic
    assert (found.requests, found.waiting, found.known) == (4, 2, 2)
    assert found.mean_s == pytest.approx(0.050)


def test_without_evidence_nobody_knows_what_automatic_barriers_cost(tmp_path: Path) -> None:
    """As in a test suite that has no replica of its own."""
    one = Recorder("aaaaaaaaaaaa")
    one.read(0, SHOW, entry(1))
    found = reported(tmp_path, one)
    assert (found.automatic.waiting, found.automatic.mean_s) == (1, None)
    assert "for a wait that no evidence shows" in render(found, "text")


def test_a_log_under_two_names_is_a_lint(tmp_path: Path) -> None:
    """Of names that are unique: another store has `0.1` of MariaDB's by chance."""
    one, other = Recorder("aaaaaaaaaaaa", "web"), Recorder("bbbbbbbbbbbb", "worker")
    for log in ("0.1", "8f3a1c0e-7d2b-4c55"):
        one.write(0.1, SAVE, entry(1, "posts", log))
        other.write(0.2, SAVE, entry(2, "store", log))
    found = report(load([one.save(tmp_path), other.save(tmp_path)]))
    said = {(each.lint, each.datastore): each for each in found.lints}
    assert set(said) == {("two-names", "posts"), ("two-names", "store")}
    assert said["two-names", "posts"].details == ("also store",)
    assert said["two-names", "store"].services == ("worker",)


@pytest.mark.parametrize(
    ("rules", "together", "lint", "unclear"),
    [
        (("/app", "/app"), False, True, False),
        (("/app", ""), False, True, False),
        (("/app", "/other"), True, False, False),
        (("/app", None), True, True, False),
        ((None, None), False, False, True),
    ],
)
def test_databases_of_one_server_have_one_log(
    tmp_path: Path,
    *,
    rules: tuple[str | None, str | None],
    together: bool,
    lint: bool,
    unclear: bool,
) -> None:
    """Rules tell them apart; without them a request that has to do with both says they are one."""
    names = "posts", "store"
    found = []
    for number, (name, database) in enumerate(zip(names, rules, strict=True)):
        request = REQUEST if together or not number else OTHER_REQUEST
        one = Recorder(f"{number}" * 12)
        one.write(0.1, SAVE, entry(1, name, "8f3a1c0e-7d2b-4c55"), request=request)
        if database is not None:
            one.rule(0, f"{name}=mysql://db:3306{database}", matched=True)
        found.append(one)
    said = reported(tmp_path, *found)
    assert [each.lint for each in said.lints] == ["two-names"] * 2 * lint
    assert said.unclear_names == ("posts, store",) * unclear
    assert ("names of one log: (posts, store)" in render(said, "text")) is unclear


@pytest.mark.parametrize(
    ("required", "missing"),
    [
        ("posts", ()),
        ("service:posts", ()),
        ("other:posts", ("other:posts",)),
        ("service:users", ("service:users",)),
    ],
)
def test_what_is_required_of_a_service(
    tmp_path: Path, required: str, missing: tuple[str, ...]
) -> None:
    """Something must have been judged there; that another service judges it does not count."""
    found = report(load([guarded().save(tmp_path)]), required=frozenset([required]))
    assert (found.missing, found.failed) == (missing, bool(missing))


def test_records_without_a_request_fail(tmp_path: Path) -> None:
    """Where findings shall fail: a report that saw nothing is none."""
    idle = load([Recorder("aaaaaaaaaaaa").save(tmp_path)])
    assert report(idle, fail_on="confirmed").failed
    assert not report(idle).failed
