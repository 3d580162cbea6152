"""The program `antipode`: its exit statuses, its streams, and `antipode report`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode_cli import main as program
from antipode_cli.main import main
from antipode_cli.report import FORMATS
from antipode_testing import wait_until
from tests.unit._dry_run_files import guarded, post_notification, save

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}},
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "shims"))),
    "TERM": "xterm-256color",
}
COMMAND = [sys.executable, "-m", "antipode"]
ESCAPE = "\x1b["


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A folder of records with one missing barrier, confirmed."""
    return save(tmp_path / "records", post_notification())


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A folder of records in which every read is guarded."""
    return save(tmp_path / "clean", [guarded()])


def ran(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program, as a process of its own whose output goes into a pipe."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=ENVIRONMENT | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def on_terminal(arguments: Sequence[str | Path], **environment: str) -> str:
    """What the program shows on a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], env=ENVIRONMENT | environment, stdout=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        os.close(ours)
        assert process.wait(timeout=60) == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way to say that the other end is closed.
        return b""


@pytest.mark.parametrize(
    ("fail_on", "status"), [("none", 0), ("confirmed", 1), ("unguarded", 1), ("lint", 1)]
)
def test_report_exits_with_1_where_it_is_asked_to(records: Path, fail_on: str, status: int) -> None:
    """Findings are shown in any case; only --fail-on makes a failure of them."""
    assert main(["report", str(records), "--fail-on", fail_on]) == status


def test_report_requires_what_it_is_asked_to(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A datastore of which nothing was judged fails in every format; a judged one does not."""
    assert main(["report", str(records), "--require", "posts"]) == 0
    capsys.readouterr()
    wanted = ["report", str(records), "--require", "posts, inbox,"]
    for format_ in FORMATS:
        assert main([*wanted, "--format", format_]) == 1
        shown = capsys.readouterr().out
        assert (
            "nothing judged of inbox" in shown
            or '"datastores_missing"' in shown
            or ("inbox is judged" in shown)
        ), format_


def test_report_does_not_fail_by_itself(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default shows what is there, for people who begin."""
    assert main(["report", str(records)]) == 0
    assert "1 missing barrier" in capsys.readouterr().out


def test_report_of_a_clean_run_is_one_line_and_0(
    clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Silence when clean."""
    assert main(["report", str(clean), "--fail-on", "lint"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1
    assert shown.err == ""


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [("missing.jsonl", None, "cannot read"), ("other.jsonl", "hello\n", "no record of a dry run")],
)
def test_report_of_something_else_is_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str | None,
    why: str,
) -> None:
    """What cannot be read is an error of one line, and never a clean report."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert main(["report", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert why in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["report"],
        ["fly"],
        ["report", "x", "--format", "pdf"],
        ["report", "x", "--fail-on", "a"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong call shows how to call it, on standard error."""
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "usage: antipode" in shown.err


def test_report_says_what_was_cut_off(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A crash loses at most a line, and whoever reads the report learns of it."""
    (path,) = clean.iterdir()
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    assert main(["report", str(clean)]) == 0
    assert f"{path} ends inside a line" in capsys.readouterr().err


def test_report_goes_into_a_file(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--output makes the folders that are missing, and the summary alone is printed."""
    output = tmp_path / "new" / "report.html"
    assert main(["report", str(records), "--format", "html", "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert re.fullmatch(r"antipode: 1 missing barrier .*\n", capsys.readouterr().out)


def test_report_cannot_write_is_2(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report that nobody can read later is an error now."""
    assert main(["report", str(records), "--output", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_baseline_lets_only_new_findings_fail(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written once, it makes the same records pass; a finding that is fixed is named."""
    baseline = tmp_path / "baseline.txt"
    assert main(["report", str(records), "--write-baseline", str(baseline)]) == 0
    again = ["report", str(records), "--baseline", str(baseline), "--fail-on", "lint"]
    assert main(again) == 0
    fixed = save(tmp_path / "fixed", [guarded()])
    capsys.readouterr()
    assert main(["report", str(fixed), "--baseline", str(baseline)]) == 0
    assert "no record shows any more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("comment", "status"),
    [("# antipode: ok(the feed may be old)", 0), ("# antipode: ok", 1), ("# whatever", 1)],
)
def test_a_comment_accepts_a_finding(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, status: int
) -> None:
    """At the read's line, in the sources below the working directory, and with a reason alone."""
    source = tmp_path / "notifier" / "app.py"
    source.parent.mkdir()
    source.write_text("\n" * 47 + f"read()  {comment}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(records), "--fail-on", "unguarded"]) == status


def test_a_missing_baseline_is_2(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline that was not found must not pass for an empty one."""
    assert main(["report", str(records), "--baseline", "missing.txt"]) == 2
    assert "cannot read the baseline missing.txt" in capsys.readouterr().err


def test_every_format_comes_through_a_pipe_whole(records: Path) -> None:
    """The formats for programs are those, with nothing before or after them."""
    assert json.loads(ran("report", records, "--format", "json").stdout)["version"] == 1
    assert ran("report", records, "--format", "junit").stdout.endswith("</testsuites>\n")
    assert ran("report", records, "--format", "html").stdout.endswith("</html>\n")
    assert ran("report", records, "--format", "github").stdout.startswith("::warning file=")


def test_names_in_any_script_reach_any_stream(tmp_path: Path) -> None:
    """A terminal of ASCII gets escapes; the formats for programs are UTF-8 wherever they go."""
    one = guarded()
    one.read(1, ("caf\u00e9.py", 1, "f"), {"datastore": "a", "log": "b", "version": "1"})
    folder = save(tmp_path, [one])
    assert "caf\\xe9.py" in ran("report", folder, PYTHONIOENCODING="ascii").stdout
    for wanted in ("json", "html", "junit"):
        shown = ran("report", folder, "--format", wanted, PYTHONIOENCODING="ascii").stdout
        assert "caf\u00e9.py" in shown


def test_colours_are_for_terminals(records: Path) -> None:
    """On a terminal the id and the fix stand out; the words are the same as in a pipe."""
    shown = on_terminal(["report", records])
    piped = ran("report", records).stdout
    assert ESCAPE in shown
    assert ESCAPE not in piped
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r\n", "\n") == piped


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(records: Path, variable: dict[str, str]) -> None:
    """NO_COLOR is honoured, whatever its value; a dumb terminal knows no colours."""
    assert "\x1b[3" not in on_terminal(["report", records], **variable)


def test_rich_is_not_needed(records: Path, tmp_path: Path) -> None:
    """Without the extra the report is the same, plain."""
    (tmp_path / "rich.py").write_text("raise ImportError", encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), ENVIRONMENT["PYTHONPATH"]))
    assert on_terminal(["report", records], PYTHONPATH=path).replace("\r\n", "\n") == (
        ran("report", records).stdout
    )


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    """`antipode report ... | head -1` ends without a traceback."""
    one = post_notification()[1]
    for number in range(600):
        one.read(9, (f"file{number}.py", 1, "f"), {"datastore": "a", "log": "b", "version": "1"})
    folder = save(tmp_path, [one])
    with subprocess.Popen(
        [*COMMAND, "report", str(folder)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    """Ctrl-C is status 130 without a traceback; here while it waits for its input."""
    started = tmp_path / "started"
    hook = tmp_path / "sitecustomize.py"
    hook.write_text(
        "import sys\nfrom pathlib import Path\n"
        "class Input:\n"
        "    def read(self):\n"
        f"        Path({str(started)!r}).touch()\n"
        "        return sys.__stdin__.read()\n"
        "sys.stdin = Input()\n",
        encoding="utf-8",
    )
    path = os.pathsep.join((str(tmp_path), ENVIRONMENT["PYTHONPATH"]))
    with subprocess.Popen(
        [*COMMAND, "explain", "-"],
        env=ENVIRONMENT | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(started.exists, what="the program to read", timeout_s=30)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 130


def test_it_says_its_version_and_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    """--version is the distribution's; --help lists the commands and the exit statuses."""
    for arguments in (["--version"], ["--help"]):
        with pytest.raises(SystemExit) as error:
            main(arguments)
        assert error.value.code == 0
    shown = capsys.readouterr().out
    assert f"antipode {version('antipode-xcy')}" in shown
    assert all(command in shown for command in ("report", "explain", "doctor", "Exit status"))


@pytest.mark.parametrize("command", ["report", "explain", "doctor"])
def test_every_option_is_in_the_reference(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The page lists what --help lists."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    options = set(re.findall(r"(--[a-z-]+)", capsys.readouterr().out)) - {"--help"}
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    section = page.split(f"## antipode {command}\n", 1)[1].split("\n## ", 1)[0]
    assert {option for option in options if option not in section} == set()


def test_the_guides_report_is_what_it_prints(records: Path) -> None:
    """The example in the guide is the program's own output."""
    guide = (ROOT / "docs" / "guides" / "dry-run.md").read_text(encoding="utf-8")
    assert ran("report", records).stdout in guide


@pytest.mark.parametrize("arguments", [["redis", "--lag-ms", "5"], []])
def test_a_lab_without_its_package_says_what_to_install(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library comes without servers; the other commands and the help do without them."""
    for name in [each for each in sys.modules if each.startswith("antipode_testing.lab")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "antipode_testing", None)
    assert main(["lab", *arguments]) == 2
    assert 'pip install "antipode-xcy[testing]"' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["lab", "--help"])
    assert 'pip install "antipode-xcy[testing]"' in capsys.readouterr().out


def test_the_installed_program_is_this_one() -> None:
    """The console script of the distribution is the same as `python -m antipode`."""
    found = [one.value for one in entry_points(group="console_scripts", name="antipode")]
    listed = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'antipode = "antipode_cli.main:main"' in listed
    assert set(found) <= {"antipode_cli.main:main"}
    assert program.__all__ == ["main"]
