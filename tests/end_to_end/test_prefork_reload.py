"""``setup()`` where processes are forked or started again: servers that services really run in."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from antipode_testing import wait_until
from tests.integration._ingress import ask, sent
from tests.integration._processes import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")
for name in ("flask", "gunicorn", "fastapi", "uvicorn", "django", "celery"):
    pytest.importorskip(name)

#: What each service begins with: no line but ``setup()`` is of the library.
HEAD = """
import os
import antipode
antipode.setup()
import redis
VERSION = 1
primary = redis.Redis(port=int(os.environ["PRIMARY"]))
replica = redis.Redis(port=int(os.environ["REPLICA"]))

def version():
    return f"{VERSION} {os.getpid()}"

def write(key):
    primary.set(key, "value")
    return antipode.serialize()
"""
FLASK = f"""{HEAD}
from flask import Flask

app = Flask("shop")

@app.get("/")
def root():
    return version()

@app.get("/write/<key>")
def write_it(key):
    return write(key)

@app.get("/read/<key>")
def read(key):
    antipode.barrier(timeout=20)
    return str(replica.get(key))

# The master process waits, too, before it forks: a watcher's thread and connection are its own.
with antipode.scope():
    primary.set("master", "value")
    antipode.barrier(timeout=20)
"""
FASTAPI = f"""{HEAD}
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI(default_response_class=PlainTextResponse)

@app.get("/")
async def root():
    return version()

@app.get("/write/{{key}}")
def write_it(key: str):
    return write(key)

@app.get("/read/{{key}}")
def read(key: str):
    antipode.barrier(timeout=20)
    return str(replica.get(key))
"""
DJANGO = f"""{HEAD}
import sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

def read(key):
    antipode.barrier(timeout=20)
    return str(replica.get(key))

urlpatterns = [
    path("", lambda request: HttpResponse(version())),
    path("write/<key>", lambda request, key: HttpResponse(write(key))),
    path("read/<key>", lambda request, key: HttpResponse(read(key))),
]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DEBUG=True, DATABASES={{}})
if __name__ == "__main__":
    execute_from_command_line(sys.argv)
"""
CELERY = f"""{HEAD}
import sys
from celery import Celery

broker = f"redis://127.0.0.1:{{os.environ['PRIMARY']}}"
app = Celery("shop", broker=broker + "/5", backend=broker + "/6")
app.conf.update(broker_connection_retry_on_startup=True, task_default_queue="prefork")

@app.task
def work(key):
    return os.getpid(), antipode.serialize(), write(key)
"""
PUBLISH = """
import json
import antipode
import shop

found = []
for number in range(6):
    with antipode.scope() as scope:
        shop.primary.set("cause", number)
        cause = antipode.serialize()
        found.append((cause, *shop.work.delay(f"task-{number}").get(timeout=60)))
print(json.dumps(found))
"""


@pytest.fixture
def settings(antipode_redis: RedisTopology, tmp_path: Path) -> dict[str, str]:
    """What names the servers, by address alone."""
    primary, replica = antipode_redis.primary, antipode_redis.replica
    rules = f"posts=redis://{primary}/0, posts=redis://{replica}/0?reads_from=replica"
    paths = (tmp_path, ROOT, ROOT / "shims", ROOT / "testing")
    return environment(
        {
            "PRIMARY": str(primary.port),
            "REPLICA": str(replica.port),
            "ANTIPODE_DATASTORES": rules,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "HOME": str(tmp_path),
        }
    )


class Served:
    """A service that runs, and its file."""

    def __init__(self, port: int, file: Path, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.process = process
        self._file = file
        self.version = 1

    def edit(self) -> None:
        """Write the next version of its file, as a developer or a deployment does."""
        text = self._file.read_text(encoding="utf-8")
        old, self.version = self.version, self.version + 1
        self._file.write_text(
            text.replace(f"VERSION = {old}\n", f"VERSION = {self.version}\n"), encoding="utf-8"
        )

    def seen(self) -> tuple[int, int]:
        """The version that answers, and its process; nothing where none answers."""
        assert self.process.poll() is None
        with contextlib.suppress(OSError, ValueError):
            version, pid = ask(self.port).body.split()
            return int(version), int(pid)
        return 0, 0

    def wait(self) -> None:
        """Wait until the version of the file answers."""
        wait_until(
            lambda: self.seen()[0] == self.version, what=f"version {self.version}", timeout_s=60
        )

    def processes(self, count: int) -> set[int]:
        """The processes that answer: *count* at least."""
        found: set[int] = set()

        def there() -> bool:
            found.add(self.seen()[1])
            return len(found - {0}) >= count

        wait_until(there, what=f"{count} processes", timeout_s=60)
        return found

    def is_covered(self, topology: RedisTopology, times: int = 20) -> None:
        """Each request has its own scope, and reads wait for what they depend on."""
        topology.set_lag(20)
        for number in range(times):
            key = f"reload-{self.version}-{number}"
            answer = ask(self.port, f"/write/{key}")
            assert answer.lineage is not None
            assert len(answer.lineage) == 1
            assert not answer.lineage.incomplete
            read = ask(self.port, f"/read/{key}", sent(*answer.lineage))
            assert read.body == b"b'value'"


@contextlib.contextmanager
def serving(
    folder: Path, text: str, settings: dict[str, str], *program: str, inherit: bool = True
) -> Iterator[Served]:
    """The service of *text*, by *program* with its socket ``{fd}`` or its port ``{port}``."""
    file = folder / "shop.py"
    file.write_text(text, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, number = listening.getsockname()[1], listening.fileno()
        if not inherit:
            listening.close()
        with (folder / "output").open("wb") as output:
            running = subprocess.Popen(
                [sys.executable, *(each.format(fd=number, port=port) for each in program)],
                env=settings,
                cwd=folder,
                pass_fds=[number] if inherit else (),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    served = Served(port, file, running)
    try:
        served.wait()
        yield served
    finally:
        sys.stdout.write((folder / "output").read_text())  # Shown where a test fails.
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(30)


@pytest.mark.parametrize("preload", [True, False])
def test_gunicorn(
    preload: bool,  # noqa: FBT001 - a parameter of the test
    antipode_redis: RedisTopology,
    settings: dict[str, str],
    tmp_path: Path,
) -> None:
    """Workers that are forked, before or after the application is loaded, and forked again."""
    program = ["-m", "gunicorn", "--workers", "2", "--threads", "4", "--bind", "fd://{fd}"]
    program += ["--preload"] if preload else []
    with serving(tmp_path, FLASK, settings, *program, "shop:app") as served:
        before = served.processes(2)
        served.is_covered(antipode_redis)
        if not preload:  # A preloaded application stays as it is when the workers are renewed.
            served.edit()
        served.process.send_signal(signal.SIGHUP)
        served.wait()
        wait_until(lambda: served.seen()[1] not in before | {0}, what="new workers", timeout_s=60)
        served.is_covered(antipode_redis)


def test_uvicorn_reloads(
    antipode_redis: RedisTopology, settings: dict[str, str], tmp_path: Path
) -> None:
    """``--reload`` starts the service again in a new process, twice."""
    program = ("-m", "uvicorn", "--fd", "{fd}", "--reload", "--reload-dir", str(tmp_path))
    with serving(tmp_path, FASTAPI, settings, *program, "shop:app") as served:
        for _ in range(2):
            served.is_covered(antipode_redis)
            served.edit()
            served.wait()
        served.is_covered(antipode_redis)


def test_django_reloads(
    antipode_redis: RedisTopology, settings: dict[str, str], tmp_path: Path
) -> None:
    """``runserver`` starts the service again as its file changes."""
    program = ("shop.py", "runserver", "127.0.0.1:{port}")
    with serving(tmp_path, DJANGO, settings, *program, inherit=False) as served:
        served.is_covered(antipode_redis)
        served.edit()
        served.wait()
        served.is_covered(antipode_redis)


def test_celery_forks(
    antipode_redis: RedisTopology, settings: dict[str, str], tmp_path: Path
) -> None:
    """Tasks in forked processes, each of which ends after one, depend on their causes."""
    import antipode

    (tmp_path / "shop.py").write_text(CELERY, encoding="utf-8")
    (tmp_path / "publish.py").write_text(PUBLISH, encoding="utf-8")
    program = ["-m", "celery", "-A", "shop", "worker", "-P", "prefork", "-c", "2"]
    program += ["--max-tasks-per-child", "1", "--without-gossip", "--without-mingle"]
    with (tmp_path / "output").open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, *program],
            env=settings,
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        published = subprocess.run(
            [sys.executable, "publish.py"],
            env=settings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert published.returncode == 0, published.stderr + (tmp_path / "output").read_text()
        found = json.loads(published.stdout.splitlines()[-1])
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(30)
    for cause, _, came, wrote in found:
        (write,) = antipode.deserialize(cause)
        assert set(antipode.deserialize(came)) == {write}
        after = antipode.deserialize(wrote)
        assert [each.datastore for each in after] == ["posts"]
        assert after != antipode.deserialize(came)
        assert not after.incomplete
    assert len({pid for _, pid, _, _ in found}) >= 3
    with contextlib.closing(_client(antipode_redis)) as plain:
        for database in (5, 6):
            plain.select(database)
            plain.flushdb()


def _client(topology: RedisTopology) -> Any:
    import redis

    return redis.Redis(port=topology.primary.port, single_connection_client=True)
