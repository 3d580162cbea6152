"""The post-notification benchmark, as its users run it: small, and in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from antipode.checker import check, load
from antipode_testing import wait_until
from benchmarks import post_notification

REQUESTS = 60
PROGRAM = (sys.executable, "-m", "benchmarks.post_notification")
SCHEMA = Path(post_notification.__file__).with_name("result.schema.json")
ROOT = SCHEMA.parents[2]
PNG = b"\x89PNG\r\n"


def start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    """Start the benchmark as a user would, from the project's folder."""
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def services_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that the benchmark has started and that run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if int(fields[1]) == process.pid:
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    """One run of the embedded pair: what it printed, its JSON, and its folder."""
    folder = tmp_path_factory.mktemp("post-notification")
    path = folder / "out.json"
    lag = ("--lag-ms", "100", "--lag-spread", "0")
    results = ("--json", str(path), "--history", str(folder / "history"), "--details")
    process = start("--requests", str(REQUESTS), *lag, *results)
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, said + errors
    return said, json.loads(path.read_text()), folder


def summaries_of_all(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The summaries of all rounds."""
    return [each["summary"] for each in result["rounds"]]


def summaries(result: dict[str, Any], strategy: str) -> list[dict[str, Any]]:
    """The summaries of all rounds of a strategy."""
    return [each for each in summaries_of_all(result) if each["strategy"] == strategy]


def test_the_checker_judges_the_recorded_histories(
    run: tuple[str, dict[str, Any], Path],
) -> None:
    """Without the barrier what lineages carry is violated, with it the history is consistent."""
    said, _, folder = run
    found = {path.stem: check(load([path])) for path in (folder / "history").glob("*.jsonl")}
    assert {name: str(result) for name, result in found.items()} == {
        "none": "violation (XCY, carried)",
        "barrier": "ok",
    }
    assert f"history: {folder / 'history' / 'none.jsonl'}: violation (XCY, carried)" in said


def test_the_barrier_prevents_every_violation(run: tuple[str, dict[str, Any], Path]) -> None:
    """With it no read is wrong, whatever the request did; without it more than half are."""
    _, result, _ = run
    for summary in summaries(result, "barrier"):
        assert summary["requests"] == REQUESTS
        assert summary["outcomes"]["consistent"] == REQUESTS, summary
        assert summary["early"] == 0
    for summary in summaries(result, "none"):
        assert summary["outcomes"]["violation"] > REQUESTS / 2, summary


def test_every_observation_is_written_down(run: tuple[str, dict[str, Any], Path]) -> None:
    """The JSON follows its schema; each request of each round is in it, warm-up included."""
    _, result, _ = run
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    assert len(result["rounds"]) == 6
    for each in result["rounds"]:
        measured = [o for o in each["observations"] if not o["warmup"]]
        assert len(measured) == REQUESTS
        options = result["options"]
        assert len(each["observations"]) == REQUESTS + options["blocks"] * options["warmup"]
        blocks = [o["block"] for o in measured]
        assert [blocks.count(block) for block in range(options["blocks"])] == [12] * 5


def test_the_truth_comes_from_the_replica(run: tuple[str, dict[str, Any], Path]) -> None:
    """The poller sees every write become visible, not before the lag is over."""
    _, result, _ = run
    for each in result["rounds"]:
        assert each["summary"]["unwatched"] == 0
        assert each["summary"]["lag_ms"]["median"] > 95
        for observed in each["observations"]:
            assert observed["unseen_ns"] < observed["seen_ns"]


def test_the_baseline_carries_no_metadata(run: tuple[str, dict[str, Any], Path]) -> None:
    """Its notifications are their bodies and its posts their values, to the byte."""
    _, result, _ = run
    (baseline,) = (
        each
        for each in result["rounds"]
        if each["summary"]["strategy"] == "none" and each["summary"]["kind"] == "new"
    )
    ids = [observed["id"] for observed in baseline["observations"]]
    bodies = [len(json.dumps({"id": post_id, "kind": "new"})) for post_id in ids]
    sizes = baseline["summary"]["bytes"]
    assert sizes["notification"] == pytest.approx(sum(bodies) / len(bodies))
    assert sizes["stored"] < result["options"]["post_bytes"] + len("0-0-new-999") + 1
    (guarded,) = (s for s in summaries(result, "barrier") if s["kind"] == "new")
    assert guarded["bytes"]["notification"] > sizes["notification"]
    assert guarded["bytes"]["calls"] > sizes["calls"]


def test_the_table_and_the_picture(run: tuple[str, dict[str, Any], Path]) -> None:
    """A person gets sentences, tables that fit a terminal, and a picture that exists."""
    said, _, folder = run
    assert "of 180 notifications were opened before the post could be read" in said
    assert "With a barrier, 0 of 180;" in said
    assert "with the barrier 0 of" in said.splitlines()[-1]
    (line,) = (line for line in said.splitlines() if line.startswith("picture: "))
    assert Path(line.removeprefix("picture: ")).read_bytes().startswith(PNG)
    assert (folder / "out.png").exists()
    table = [line for line in said.splitlines() if line.startswith(("new", "update", "delete"))]
    assert len(table) == 24
    assert all(len(line) <= 80 for line in table)


@pytest.mark.parametrize("store", ["redis", "mysql", "mariadb", "mongodb"])
def test_each_post_storage(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Over every real store: updates and deletes included, no read behind a barrier is wrong."""
    request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where the store is required.
    path = tmp_path / "out.json"
    process = start(
        *("--post-storage", store, "--requests", "40", "--lag-ms", "200", "--link-ms", "5"),
        *("--blocks", "1"),
        *("--json", str(path)),
    )
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, said + errors
    result = json.loads(path.read_text())
    assert sum(each["outcomes"]["violation"] for each in summaries(result, "none")) > 0
    for summary in summaries(result, "barrier"):
        assert summary["outcomes"]["consistent"] == 40


def test_what_users_would_do_instead(tmp_path: Path) -> None:
    """Reads of the primary are right and cross the link; retries help where nothing is found."""
    path = tmp_path / "out.json"
    strategies = "none,auto,artefact,sleep,retry,primary,sticky"
    process = start(
        *("--requests", "40", "--lag-ms", "150", "--link-ms", "25", "--kinds", "new,update"),
        *("--lag-spread", "0", "--blocks", "1"),
        *("--strategies", strategies, "--json", str(path)),
    )
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, said + errors
    result = json.loads(path.read_text())
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    found = {(it["strategy"], it["kind"]): it for it in summaries_of_all(result)}
    for strategy in ("primary", "sticky"):
        for kind in ("new", "update"):
            summary = found[strategy, kind]
            assert summary["outcomes"]["consistent"] == 40
            assert summary["primary"]["reads"] == 1
            assert summary["reader_ms"]["least"] > 2 * 25
    for kind in ("new", "update"):
        assert found["auto", kind]["outcomes"]["consistent"] == 40
        assert found["retry", kind]["outcomes"]["consistent"] == 40
        assert found["retry", kind]["reads"] > 1
    assert found["artefact", "new"]["outcomes"]["consistent"] == 40
    assert found["artefact", "update"]["violation_share"] > 0.5
    assert found["sleep", "new"]["reader_ms"]["least"] > 150
    assert all(it["primary"]["reads"] == 0 for it in found.values() if it["strategy"] == "none")


@pytest.mark.parametrize("store", ["redis", "mysql", "mariadb", "mongodb"])
def test_what_a_store_offers_instead(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Synchronous writers wait for both ways of replication; who waits at the read is right."""
    request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where the store is required.
    path = tmp_path / "out.json"
    own = ["synchronous"] if store == "redis" else ["synchronous", "session"]
    own += ["instrumented", "at-read", "auto", "artefact"]
    process = start(
        *("--post-storage", store, "--requests", "40", "--rate", "40", "--kinds", "update"),
        *("--lag-ms", "100", "--link-ms", "30", "--json", str(path)),
        *("--lag-spread", "0", "--blocks", "1"),
        *("--strategies", ",".join(["none", *own, "primary"])),
    )
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, said + errors
    result = json.loads(path.read_text())
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    found = {it["strategy"]: it for it in summaries_of_all(result)}
    assert found["none"]["outcomes"]["violation"] > 0
    assert found["primary"]["outcomes"]["consistent"] == 40
    assert found["primary"]["primary"]["commands"] > 1.9
    assert found["synchronous"]["writer_ms"]["least"] > 100 + 30
    for ours in ("instrumented", "at-read", "auto"):
        assert found[ours]["outcomes"]["consistent"] == 40
        assert found[ours]["primary"]["reads"] == 0
        assert found[ours]["replica"]["processor_ms"] is not None
    if "session" in found:
        assert found["session"]["outcomes"]["consistent"] == 40
        assert found["session"]["primary"]["reads"] == 0
        assert found["session"]["bytes"]["notification"] > found["none"]["bytes"]["notification"]


@pytest.mark.parametrize("store", ["embedded", "redis"])
def test_the_lag_is_swept_in_one_run(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Each strategy makes its requests at each lag, and polling costs the replica commands."""
    if store != "embedded":
        request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where it is required.
    path = tmp_path / "out.json"
    process = start(
        *("--post-storage", store, "--requests", "20", "--blocks", "1", "--kinds", "new"),
        *("--lag-ms", "40,160", "--lag-spread", "0", "--json", str(path)),
        *("--strategies", "none,auto,artefact"),
    )
    said, errors = process.communicate(timeout=100)
    assert process.returncode == 0, said + errors
    result = json.loads(path.read_text())
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    found = {(it["strategy"], it["chosen_lag_ms"]): it for it in summaries_of_all(result)}
    assert len(found) == 6
    for (_, lag_ms), summary in found.items():
        assert lag_ms * 0.9 < summary["lag_ms"]["median"] < lag_ms + 100
    if store != "embedded":
        polls = {lag: found["artefact", lag]["replica"]["commands"] for lag in (40, 160)}
        assert polls[160] > polls[40] > found["none", 40]["replica"]["commands"]


@pytest.mark.parametrize("started", [1, 4, 10])
def test_an_interrupt_leaves_nothing_behind(started: int, tmp_path: Path) -> None:
    """Ctrl-C, while services are started too: one line, status 130, every process is gone."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = start("--requests", "5000", "--out-dir", str(tmp_path / "out"), env=environment)
    wait_until(lambda: len(services_of(process)) >= started, what="the services", timeout_s=60)
    services = services_of(process)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == ""
    assert errors.strip().count("\n") == 0
    assert "interrupted" in errors
    assert not [pid for pid in services if Path("/proc", str(pid)).exists()]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("antipode-")]


def test_services_end_with_the_program_that_started_them(tmp_path: Path) -> None:
    """Even if it is killed, and can stop nothing itself."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = start("--requests", "5000", "--out-dir", str(tmp_path / "out"), env=environment)
    wait_until(lambda: len(services_of(process)) >= 10, what="the services", timeout_s=60)
    services = services_of(process)
    process.kill()
    process.communicate(timeout=30)
    wait_until(
        lambda: not any(Path("/proc", str(pid)).exists() for pid in services),
        what="the services to end",
        timeout_s=30,
    )


@pytest.mark.parametrize(
    ("arguments", "server"),
    [
        (["--post-storage", "redis"], "redis-server"),
        (["--notifier", "rabbitmq"], "rabbitmq-server"),
    ],
)
def test_a_missing_server_is_one_line(arguments: list[str], server: str, tmp_path: Path) -> None:
    """It names what to install, and ends with status 2."""
    environment = {**os.environ, "PATH": str(tmp_path)}
    process = start(*arguments, "--out-dir", str(tmp_path), env=environment)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said == ""
    assert errors.strip().count("\n") == 0
    assert f"apt-get install {server}" in errors
