"""The pytest plugin's dry run: missing barriers of a test suite, by its options."""

from __future__ import annotations

import json

import pytest

from tests.unit._dry_run_suite import (
    DRY,
    FAIL,
    FEED,
    FINDING,
    REPORT,
    findings,
    make_suite,
    replace_line,
    reported,
    run,
)

pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A service with a missing barrier, and its tests."""
    return make_suite(pytester, monkeypatch)


def test_finding_is_two_lines_the_fix_and_an_id(suite: pytest.Pytester) -> None:
    """A missing barrier is shown with both places, the fix, its id and the offending tests."""
    result = run(suite, DRY)
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            f"{FINDING} posts: *(2 reads)",
            "  write feed.py:6 in publish",
            "  read  feed.py:12 in show",
            "  fix   antipode.barrier(timeout=..., only=['posts']) before feed.py:12 in show",
            "  test  test_feed.py::test_one, test_feed.py::test_two",
        ]
    )
    assert not (suite.path / "out").exists()


@pytest.mark.parametrize(
    ("level", "status"), [("unguarded", 1), ("lint", 1), ("confirmed", 0), ("none", 0)]
)
def test_fail_on_decides_the_exit_status(suite: pytest.Pytester, level: str, status: int) -> None:
    """A missing barrier that no lag has confirmed fails the run where that is asked for."""
    result = run(suite, DRY, f"--antipode-fail-on={level}")
    result.assert_outcomes(passed=3)
    assert result.ret == status
    said = [line for line in result.outlines if f"fails on {FINDING}" in line]
    assert len(said) == status


@pytest.mark.slow
@pytest.mark.parametrize(("required", "status"), [("posts", 0), ("posts,inbox", 1)])
def test_a_required_datastore_must_be_judged(
    suite: pytest.Pytester, required: str, status: int
) -> None:
    """Nothing judged of a datastore fails the run where it is required, findings or not."""
    result = run(suite, DRY, f"--antipode-require={required}", REPORT)
    assert result.ret == status
    assert reported(suite)["datastores_missing"] == (["inbox"] if status else [])
    said = [line for line in result.outlines if "nothing was judged of inbox" in line]
    assert len(said) == status


@pytest.mark.slow
def test_a_run_that_judged_nothing_says_so(suite: pytest.Pytester) -> None:
    """What was written and never read from a replica is named where nothing at all was judged."""
    suite.makepyfile(
        test_feed="""\
import antipode
from antipode_shims import embedded

def test_writes(tmp_path):
    with embedded.shim("posts", tmp_path / "posts.db", reads_from="primary") as writer:
        with antipode.scope():
            writer.write("one", b"hello")
"""
    )
    result = run(suite, DRY, "--antipode-fail-on=lint")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not judged: posts *"])


def test_clean_run_is_one_line(suite: pytest.Pytester) -> None:
    """With the barrier in place the run says what it saw, and its report that it is clean."""
    suite.makepyfile(feed=FEED.replace("        show(reader, key)\n", ""))
    result = run(suite, DRY, "--antipode-fail-on=lint", REPORT)
    assert result.ret == 0
    (line,) = (each for each in result.outlines + result.errlines if "antipode" in each)
    assert line == (
        "antipode: no missing barrier (2 requests of 1 process, "
        "2 reads of replicas with a write to see, datastores: posts)"
    )
    assert reported(suite)["failed"] is False
    assert reported(suite)["records"]["reads_guarded"] == 2


def test_stale_read_is_confirmed(suite: pytest.Pytester) -> None:
    """Over a replica that stands still the read is proved stale, and that can fail a run."""
    suite.makepyfile(
        test_feed="""\
import feed
import pytest
from antipode_shims import embedded

@pytest.fixture
def regions(antipode_embedded):
    antipode_embedded.pause()
    writer = embedded.shim("posts", antipode_embedded.primary, reads_from="primary")
    with writer, embedded.shim("posts", antipode_embedded.replica, reads_from="replica") as reader:
        yield writer, reader

def test_behind(regions):
    feed.publish(*regions, "one")
"""
    )
    result = run(suite, DRY, "--antipode-fail-on=confirmed")
    result.stdout.fnmatch_lines([f"{FINDING} posts: *(1 read, 1 confirmed stale)"])
    assert result.ret == 1


def test_lints_fail_on_demand(suite: pytest.Pytester) -> None:
    """A write without a scope is a lint, which only the level `lint` fails on."""
    request = "def test_two():\n    with antipode.scope():\n        pass\n"
    write = 'def test_one(stores):\n    stores[0].write("a", b"b")\n'
    suite.makepyfile(test_feed=f"{write}\nimport antipode\n\n{request}")
    assert run(suite, DRY, FAIL).ret == 0
    result = run(suite, DRY, "--antipode-fail-on=lint")
    result.stdout.fnmatch_lines(["l* posts: *(unscoped-write, 1 time)", "* test_feed.py:2 *"])
    assert result.ret == 1


def test_a_run_without_a_request_fails(suite: pytest.Pytester) -> None:
    """Where findings shall fail, nothing that could have any is no success; a plain run says so."""
    suite.makepyfile(test_feed="def test_one():\n    pass\n")
    result = run(suite, DRY, FAIL)
    result.stdout.fnmatch_lines(["no request is recorded, *", "*unguarded fails: no request *"])
    assert result.ret == 1
    result = run(suite, DRY)
    result.stdout.fnmatch_lines(["antipode: no missing barrier (0 requests *datastores: none)"])
    assert result.ret == 0


def test_report_has_all_formats(suite: pytest.Pytester) -> None:
    """The folder has the report for people and programs, and the records of this run alone."""
    run(suite, DRY, REPORT)
    run(suite, DRY, REPORT)
    folder = suite.path / "out"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "baseline.txt",
        "junit.xml",
        "records",
        "report.html",
        "report.json",
        "report.txt",
    }
    for name in names - {"records"}:
        assert FINDING in (folder / name).read_text(encoding="utf-8")
    assert len(list((folder / "records").iterdir())) == 1


def test_baseline_lets_only_new_findings_fail(suite: pytest.Pytester) -> None:
    """What the baseline has is silent; a read added later fails, and is the only one shown."""
    run(suite, DRY, REPORT)
    (suite.path / "out" / "baseline.txt").rename(suite.path / "known.txt")
    gate = (DRY, FAIL, "--antipode-baseline=known.txt")
    legacy = run(suite, *gate)
    assert legacy.ret == 0
    assert FINDING not in legacy.stdout.str()
    replace_line(
        suite.path / "feed.py",
        "        show(reader, key)",
        "        show(reader, reader.read(key) and key)",
    )
    result = run(suite, *gate)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["u* posts: *", "  read  feed.py:7 in publish"])
    assert FINDING not in result.stdout.str().replace(f"guards {FINDING}", "")


ACCEPTED = "    return reader.read(key)  # antipode: ok(the page says that it may be late)"
ABOVE = "    # antipode: ok(the page says that it may be late)\n    return reader.read(key)"
BEFORE = (
    "    key = str(key)  # antipode: ok(the page says that it may be late)\n"
    "    return reader.read(key)"
)


@pytest.mark.parametrize(("code", "accepted"), [(ACCEPTED, 1), (ABOVE, 1), (BEFORE, 0)])
def test_comment_accepts_a_finding(suite: pytest.Pytester, code: str, accepted: int) -> None:
    """On the read's line, or alone above it, it accepts; the reason is told. Elsewhere not."""
    body = FEED.replace("    return reader.read(key)", code, 1)
    suite.makepyfile(feed=body)
    result = run(suite, DRY, FAIL, REPORT)
    assert result.ret == 1 - accepted
    told = f"{FINDING} accepted at feed.py:1[23] in show: the page says that it may be late"
    assert len([line for line in result.outlines if "accepted at" in line]) == accepted
    if accepted:
        result.stdout.fnmatch_lines([told])
        (found,) = reported(suite)["findings"]
        assert found["accepted"] == "the page says that it may be late"
        assert FINDING not in (suite.path / "out" / "baseline.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("comment", ["# antipode: ok", "# antipode: ok()", "# antipode: ok(  )"])
def test_comment_without_a_reason_is_an_error(suite: pytest.Pytester, comment: str) -> None:
    """It accepts nothing, and fails the run at every level."""
    suite.makepyfile(
        feed=FEED.replace("return reader.read(key)", f"return reader.read(key)  {comment}", 1)
    )
    result = run(suite, DRY)
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"{FINDING} *", "feed.py:12: *must give its reason"])


def test_tests_are_kept_apart(suite: pytest.Pytester) -> None:
    """A scope that a test leaves open, and what it configures, do not reach the next test."""
    suite.makepyfile(
        test_feed="""\
import antipode
import feed

def test_leaves(stores):
    antipode.root()
    stores[0].write("one", b"hello")
    antipode.configure(mode="enforce", max_timeout=7)

def test_next(stores):
    assert antipode.shim.config().max_timeout == 7
    feed.show(stores[1], "one")

def test_last(stores):
    feed.publish(*stores, "two")
"""
    )
    run(suite, DRY, REPORT).assert_outcomes(passed=3)
    assert findings(suite) == [(FINDING, ["test_feed.py::test_last"], [12])]


def test_settings_are_put_back(suite: pytest.Pytester) -> None:
    """After the session the process and its environment are as they were before it."""
    suite.makepyfile(
        started="""\
import os, sys
import antipode, pytest
antipode.configure(region="eu", max_timeout=9)
os.environ["ANTIPODE_DRY_RUN_DIR"] = "mine"
def state():
    mine = {name: value for name, value in os.environ.items() if name.startswith("ANTIPODE")}
    return antipode.shim.config(), mine
before = state()
assert pytest.main(sys.argv[1:]) == 0
assert state() == before
antipode.configure(mode="off")
assert pytest.main(sys.argv[1:]) == 0
assert antipode.shim.config().mode == "off"
from antipode._runtime import observers
assert observers.dry_run is None
"""
    )
    result = suite.runpython_c(
        f"import sys; sys.argv += ['-q', '{DRY}', 'test_feed.py']; import runpy;"
        "runpy.run_path('started.py')"
    )
    assert result.ret == 0
    assert len([line for line in result.outlines if line.startswith(FINDING)]) == 2
    assert not (suite.path / "mine").exists()


LOADED = """\
import json, sys
def test_modules():
    json.dump(sorted(sys.modules), open("modules.json", "w"))
"""


def test_off_it_imports_its_option_module_alone(suite: pytest.Pytester) -> None:
    """Without the option, the plugin and its options are all that a run loads of us."""
    suite.makeconftest("")
    suite.makepyfile(test_feed=LOADED)
    run(suite).assert_outcomes(passed=1)
    off = json.loads((suite.path / "modules.json").read_text(encoding="utf-8"))
    ours = {name for name in off if name.startswith("antipode")}
    assert ours == {
        *("antipode_cli", "antipode_cli._pytest_options", "antipode_cli.pytest_plugin"),
        *("antipode_testing", "antipode_testing.plugin"),
    }
    run(suite, DRY).assert_outcomes(passed=1)
    on = json.loads((suite.path / "modules.json").read_text(encoding="utf-8"))
    assert {"antipode._dry_run.dry_run", "antipode_cli.report"} <= set(on)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((FAIL,), "--antipode-fail-on needs --antipode-dry-run"),
        (("--antipode-baseline=known.txt",), "--antipode-baseline needs --antipode-dry-run"),
        ((REPORT,), "--antipode-report needs --antipode-dry-run"),
        (("--antipode-require=posts",), "--antipode-require needs --antipode-dry-run"),
        ((DRY, "--antipode-baseline=none.txt"), "*cannot read the baseline*none.txt*"),
        ((DRY, "--antipode-baseline=feed.py"), "*feed.py:1 is no line of a baseline*"),
        ((DRY, "--antipode-report=feed.py"), "*feed.py*"),
        ((DRY, "--antipode-fail-on=all"), "*invalid choice: 'all'*"),
    ],
)
def test_misuse_ends_the_run_before_it_begins(
    suite: pytest.Pytester, options: tuple[str, ...], message: str
) -> None:
    """A gate that would check nothing, or against nothing, is a usage error, not a pass."""
    result = run(suite, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])
