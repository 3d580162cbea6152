"""The worked example, as it stands in examples/posts: services as processes, on real servers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from antipode_cli.report import load, report
from antipode_testing import ServerFailed, wait_until
from examples.posts.run import Regions, Services, tell
from tests.integration._processes import environment as process_environment
from tests.integration._warned import OF_SETTINGS, note_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MySQLTopology, RabbitMQTopology, RedisTopology

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "examples.posts"]
READS = ("post", "counter", "page", "views")
BARRIER = "    antipode.barrier("

pytestmark = [
    *(pytest.mark.store(name) for name in ("mysql", "redis", "rabbitmq")),
    pytest.mark.slow,
]


@pytest.fixture
def regions(
    antipode_mysql: MySQLTopology,
    antipode_redis: RedisTopology,
    antipode_rabbitmq: RabbitMQTopology,
) -> Iterator[Regions]:
    """The session's servers with what the example needs, and without it afterwards."""
    found = Regions(antipode_mysql, antipode_redis, antipode_rabbitmq)

    def empty() -> None:
        antipode_mysql.execute("DROP TABLE IF EXISTS app.posts")
        with redis.Redis(*antipode_redis.primary) as counters:
            counters.flushall()
        for path in ("queues/%2f/tasks", "queues/%2f/created-posts", "exchanges/%2f/geo.posts"):
            for region in ("us", "eu"):
                with contextlib.suppress(ServerFailed):  # It is not there.
                    antipode_rabbitmq.management(region).delete(path)

    empty()
    found.migrate()
    yield found
    empty()


def test_without_barriers_the_eu_reads_too_early(regions: Regions, tmp_path: Path) -> None:
    """Messages overtake replication that stands still: nothing that they speak of is there."""
    with Services(regions, mode="off", directory=tmp_path) as services:
        regions.mysql.pause()
        regions.redis.pause()
        seen = list(tell(services, 5))
    assert [each.stale for each in seen] == [READS] * 5


def test_behind_barriers_everything_is_there(
    regions: Regions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under 100 ms of lag no read is early, and the lineage at the end names all that was written.

    The view that the API of the EU counted is in it, which only its response can have brought. The
    library warns of nothing in how the services are set up.
    """
    note_warnings(tmp_path, tmp_path / "warnings")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Services(regions, mode="enforce", directory=tmp_path) as services:
        regions.set_lag(100)
        seen = list(tell(services, 30))
    assert [each.stale for each in seen] == [()] * 30
    told = (tmp_path / "warnings").read_text()
    assert not OF_SETTINGS.search(told), told
    for each in seen:
        assert each.lineage.datastores == {"posts", "counters", "notifications"}
        assert not each.lineage.incomplete
        (written,) = each.written.only("counters")
        (held,) = each.lineage.only("counters")
        assert held.key == written.key
        assert int(held.version) > int(written.version)
        first, last = (it.only("posts", "notifications") for it in (each.written, each.lineage))
        # Each says how many branches of its request still ran when it left; all else is the same.
        most = max(first.open_branches, last.open_branches)
        assert last.branching(most) == first.branching(most)


def test_reads_that_wait_by_themselves_need_no_barrier(
    regions: Regions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the two barriers taken out of the code and one setting, no read is early."""
    without_barriers(tmp_path / "tree", (0, 1))
    monkeypatch.syspath_prepend(str(tmp_path / "tree"))
    monkeypatch.setenv("ANTIPODE_BARRIERS", "auto")
    monkeypatch.setenv("ANTIPODE_AUTO_TIMEOUT", "5")
    with Services(regions, mode="enforce", directory=tmp_path) as services:
        regions.set_lag(100)
        seen = list(tell(services, 10))
    assert [each.stale for each in seen] == [()] * 10


@pytest.mark.parametrize(
    ("removed", "missing"),
    [
        ((), set()),
        ((0,), {("posts", "notify"), ("counters", "notify"), ("posts", "show")}),
        ((1,), {("counters", "notify")}),
    ],
    ids=["none", "first", "second"],
)
def test_dry_run_finds_the_barrier_that_is_missing(
    regions: Regions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    removed: tuple[int, ...],
    missing: set[tuple[str, str]],
) -> None:
    """Without any lag: nothing as it stands; with a barrier removed, the reads that it guarded."""
    without_barriers(tmp_path / "tree", removed)
    monkeypatch.syspath_prepend(str(tmp_path / "tree"))
    monkeypatch.setenv("ANTIPODE_DRY_RUN_DIR", str(tmp_path / "records"))
    with Services(regions, mode="dry-run", directory=tmp_path) as services:
        list(tell(services, 3))
    found = report(load([tmp_path / "records"]))
    assert found.records
    assert {(each.datastore, each.read.function) for each in found.findings} == missing
    assert not found.lints
    written = {"posts": {"create"}, "counters": {"create", "show"}}
    assert all(each.write.function in written[each.datastore] for each in found.findings)


@pytest.mark.parametrize(
    "service", ["us_api:app", "eu_api:app", "eu_consumer", "eu_tasks:app"], ids=lambda it: it[:6]
)
def test_doctor_has_nothing_to_correct(regions: Regions, service: str) -> None:
    """Each service is in order: no problem, and no client or rule without the other."""
    eu = regions.eu(driver="mysql+aiomysql" if service == "eu_api:app" else "mysql+pymysql")
    given = regions.us() if service == "us_api:app" else {**eu, "EU_API_URL": "http://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-m", "antipode", "doctor", "--app", f"examples.posts.{service}"],
        cwd=ROOT,
        env=process_environment(given),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot tell" not in done.stdout, done.stdout


def without_barriers(folder: Path, removed: tuple[int, ...]) -> None:
    """A copy of the example, without the barriers of these numbers."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    tasks = folder / "examples" / "posts" / "eu_tasks.py"
    lines = tasks.read_text().splitlines(keepends=True)
    barriers = [number for number, line in enumerate(lines) if line.startswith(BARRIER)]
    assert len(barriers) == 2
    gone = {barriers[each] for each in removed}
    tasks.write_text("".join(line for number, line in enumerate(lines) if number not in gone))


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """What the command gets: a TMPDIR of its own, by which it is found what it starts."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("ANTIPODE_")}
    with tempfile.TemporaryDirectory(prefix="ex") as folder:
        yield {**kept, "TMPDIR": folder, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("antipode_mysql", "antipode_redis", "antipode_rabbitmq")
def test_the_command_tells_the_story(environment: dict[str, str]) -> None:
    """It exits with 0, and its lines say what was early without barriers, and nothing with them."""
    done = subprocess.run(
        [*COMMAND, "--posts", "5"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, without, behind = done.stdout.split("\n\n")
    assert "not there yet" in without
    assert behind.count("always there") == len(READS)
    assert "not there yet" not in behind
    assert behind.rstrip().endswith("counters, notifications, posts")
    assert not running(environment)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("antipode_mysql", "antipode_redis", "antipode_rabbitmq")
def test_interrupt_ends_everything(environment: dict[str, str]) -> None:
    """Ctrl-C while services run: status 130, one line that says so, and no process is left."""
    process = subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: (
                process.poll() is not None or any("celery" in each for each in running(environment))
            ),
            what="the worker",
            timeout_s=200,
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert errors == "\ninterrupted; everything that was started is stopped\n"
    assert not running(environment)


def running(environment: dict[str, str]) -> list[str]:
    """The command lines of processes with this TMPDIR, but for Erlang's own name server."""
    marker = f"TMPDIR={environment['TMPDIR']}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if marker in variables and not words[0].endswith(b"epmd"):
            found.append(b" ".join(words).decode(errors="replace"))
    return found


def test_missing_server_is_said_in_one_line(environment: dict[str, str]) -> None:
    """The command names what is missing and how to install it, and ends with 2."""
    done = subprocess.run(
        COMMAND,
        cwd=ROOT,
        env={**environment, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the executable 'redis-server' is not on PATH: install")
    assert done.stderr.count("\n") == 1
