"""The command line of the post-notification benchmark says what is wrong in one line."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.post_notification import _cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--post-storage", "mongo"], "'mongo'"),
        (["--notifier", "redis"], "'redis'"),
        (["--stack", "swarm"], "'swarm'"),
        (["--stack", "compose", "--post-storage", "mariadb"], "no mariadb"),
        (["--requests", "0"], "--requests"),
        (["--requests", "many"], "--requests"),
        (["--warmup", "-1"], "--warmup"),
        (["--rate", "0"], "--rate"),
        (["--rate", "nan"], "--rate"),
        (["--lag-ms", "-5"], "--lag-ms"),
        (["--lag-spread", "3"], "--lag-spread"),
        (["--stack", "compose", "--lag-spread", "0.5"], "one lag"),
        (["--notifier-lag-ms", "-5"], "--notifier-lag-ms"),
        (["--notify-delay-ms", "5,later"], "'later'"),
        (["--notify-delay-ms", "6000"], "--notify-delay-ms"),
        (["--timeout", "soon"], "--timeout"),
        (["--kinds", "new,insert"], "'insert'"),
        (["--strategies", "barrier,hope"], "'hope'"),
        (["--post-storage", "redis", "--strategies", "session"], "mysql, mariadb, mongodb"),
        (["--strategies", "synchronous"], "embedded has no 'synchronous'"),
        (
            ["--stack", "compose", "--post-storage", "redis", "--strategies", "synchronous"],
            "--stack own",
        ),
        (["--link-ms", "far"], "--link-ms"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, one line that names the argument and where to look, nothing started."""
    with pytest.raises(SystemExit) as ended:
        _cli.main(arguments)
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert says in message
    assert "--help" in message


def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever lacks redis-py is told the one command that brings it."""
    find = importlib.util.find_spec

    def without_redis(name: str, *rest: Any) -> Any:
        return None if name == "redis" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without_redis)
    assert _cli.main(["--post-storage", "redis"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "pip install 'antipode-xcy[redis]'" in message


def test_results_that_cannot_be_written_are_noticed_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits for minutes to learn that a file is in the way of a folder."""
    (tmp_path / "file").write_text("")
    assert _cli.main(["--json", str(tmp_path / "file" / "deeper" / "out.json")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "cannot write" in message


def test_the_picture_lies_beside_the_json(tmp_path: Path) -> None:
    """Unless another folder is named, where the pair gives it its name."""
    options = _cli.parse(["--json", str(tmp_path / "out.json")])
    assert options.png_path == tmp_path / "out.png"
    options = _cli.parse(
        ["--json", "out.json", "--out-dir", str(tmp_path), "--notifier", "rabbitmq"]
    )
    assert options.png_path == tmp_path / "post_notification-embedded-rabbitmq.png"


def test_what_a_user_of_a_strategy_would_choose_follows_the_lag() -> None:
    """Who is told nothing else sleeps as long as replication takes, and sticks a second longer."""
    options = _cli.parse(["--lag-ms", "200"])
    assert (options.sleep_ms, options.stick_ms) == (200, 1200)
    options = _cli.parse(["--lag-ms", "200", "--sleep-ms", "0", "--stick-ms", "5"])
    assert (options.sleep_ms, options.stick_ms) == (0, 5)


def test_kinds_come_in_one_order() -> None:
    """However they are named, rounds run new, update, delete."""
    assert _cli.parse(["--kinds", "delete, new"]).kinds == ("new", "delete")
