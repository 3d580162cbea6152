"""``antipode check``: exit statuses, what it prints, its picture, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from antipode.checker import save
from antipode_cli.main import main
from tests.checker import large

HISTORIES = Path(__file__).parent / "histories"
FIRST = '{"kind": "history", "v": 1}\n'
STATUS = {"ok": 0, "unknown": 3}


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_exit_status_is_the_verdict(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 for ok, 1 for any violation, 3 for unknown; the verdict is the first word."""
    wanted = path.stem.partition(".")[2]
    assert main(["check", str(path)]) == STATUS.get(wanted, 1)
    shown = capsys.readouterr()
    assert shown.out.startswith(wanted if wanted in STATUS else "violation")
    assert shown.err == ""


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("overtaking.memory", "violation:"),
        ("figure3-before.prefix", "violation (XCY, carried):"),
        ("figure3-branches.whole-lineage", "violation (XCY, whole lineage):"),
        ("mutual-lineages.unknown", "unknown: mutual lineages: L1, L2"),
        ("overtaking.ok", "ok: 4 operations of 2 processes"),
    ],
)
def test_the_weakest_reading_is_named(
    name: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line says which part of the definition is violated."""
    main(["check", str(HISTORIES / f"{name}.jsonl")])
    assert capsys.readouterr().out.startswith(verdict)


def test_an_explanation_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    """Operations in columns, each edge with its rule, and the source lines that called."""
    path = HISTORIES / "overtaking.memory.jsonl"
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == (
        "violation: no order of all writes and of what follower read is possible\n"
        "\n"
        "     uploader                    follower\n"
        "  1  write posts:42 = a1\n"
        "  2  write notifications:7 = n1\n"
        "  3                              read notifications:7 = n1\n"
        "  4                              read posts:42 = nothing\n"
        "\n"
        "1 before 2: uploader did them in this order\n"
        "2 before 3: 3 reads what 2 wrote\n"
        "3 before 4: follower did them in this order\n"
        "4 before 1: 4 found what was there before any write of posts:42\n"
        "so 1 comes before itself\n"
        "\n"
        f"  1  uploader.py:12 in upload, lineage R1, {path}:2\n"
        f"  2  uploader.py:14 in upload, lineage R1, {path}:3\n"
        f"  3  follower.py:31 in on_notification, lineage R2, {path}:4\n"
        f"  4  follower.py:33 in on_notification, lineage R2, {path}:5\n"
    )


@pytest.mark.parametrize(
    "name",
    [
        "figure3-branches.whole-lineage",
        "back-and-forth.memory",
        "crossed.memory",
        "thin-air.memory",
    ],
)
def test_the_picture_is_drawn(name: str, tmp_path: Path) -> None:
    """--svg writes well-formed SVG with a box for each operation and an arrow for each edge."""
    picture = tmp_path / "new" / "why.svg"
    assert main(["check", str(HISTORIES / f"{name}.jsonl"), "--svg", str(picture)]) == 1
    root = ET.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 - ours.
    space = "{http://www.w3.org/2000/svg}"
    boxes = len(root.findall(f".//{space}rect"))
    arrows = len(root.findall(f".//{space}path[@d][@marker-end]"))
    assert (boxes, arrows) == (1, 0) if name == "thin-air.memory" else arrows + 1 >= boxes > 2


def test_names_cannot_command_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters of a history are shown, and not sent; in a picture they are escaped."""
    text = (HISTORIES / "overtaking.memory.jsonl").read_text(encoding="utf-8")
    path, picture = tmp_path / "h.jsonl", tmp_path / "h.svg"
    path.write_text(text.replace("follower", "\\u001b[2J<b>&"), encoding="utf-8")
    assert main(["check", str(path), "--svg", str(picture)]) == 1
    assert "\x1b" not in capsys.readouterr().out
    assert "<b>" not in picture.read_text(encoding="utf-8")
    ET.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 - ours.


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FIRST, "h.jsonl:1: the history is cut off"),
        ("hello\n", "h.jsonl:1: it is no JSON"),
        (
            FIRST + '{"kind": "receive", "process": "p", "message": "m"}\n',
            "h.jsonl:2: the history is cut off",
        ),
    ],
)
def test_a_bad_history_is_2(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cut off, malformed or contradictory: the line and the reason on standard error."""
    path = tmp_path / "h.jsonl"
    path.write_text(text, encoding="utf-8")
    assert main(["check", str(path)]) == 2
    shown = capsys.readouterr()
    assert why in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("option", [["--budget", "1"], ["--memory-limit", "1"]])
def test_limits_are_3(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A spent budget and a reached limit are unknown, and name themselves."""
    assert main(["check", str(HISTORIES / "seen-sooner.ok.jsonl"), *option]) == 3
    assert capsys.readouterr().out.startswith("unknown: ")


@pytest.mark.parametrize("option", [["--budget", "0"], ["--memory-limit", "much"]])
def test_limits_are_numbers(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is a matter of usage."""
    with pytest.raises(SystemExit) as error:
        main(["check", "h.jsonl", *option])
    assert error.value.code == 2
    assert option[0] in capsys.readouterr().err


def test_help_lists_the_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    """--help says what each status means, this command's own."""
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("3 unknown", "--svg", "--budget", "--memory-limit"))


@pytest.mark.slow
def test_progress_is_shown_and_erased(tmp_path: Path) -> None:
    """A terminal sees how far a long check is, and nothing of it when it is over."""
    path = tmp_path / "h.jsonl"
    save(large.history(17_000), path)
    ours, theirs = os.openpty()
    program = (
        "import sys\nfrom antipode_cli import _check_command\nfrom antipode_cli.main import main\n"
        "_check_command.FIRST_S = _check_command.LIVE_S = 0.0\n"
        "sys.exit(main(['check', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b"")).decode()
        os.close(ours)
        assert process.stdout is not None
        assert process.stdout.read().startswith("ok: 17,000 operations of 50 processes")
    assert "antipode: 16,384 operations read" in shown
    assert "processes checked" in shown
    assert shown.endswith("\r")


def read(terminal: int) -> bytes:
    """What a terminal was sent; nothing once the other end is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    """Ctrl-C is status 130 without a traceback; here while a history is read."""
    path = tmp_path / "h.jsonl"
    os.mkfifo(path)
    command = [sys.executable, "-m", "antipode", "check", str(path)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        path.open("wb", buffering=0) as lines,  # Once it is open there, too.
    ):
        lines.write(FIRST.encode())
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 130
