"""Real Celery workers, as processes of their own, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kombu import pools

from antipode_testing import wait_until
from tests._lines import records_in

from . import _app as tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 60.0
#: How long a worker may take to end when it is told to.
ENDS_S = 10.0
#: Who instruments Celery, in which order.
ORDERS = [
    "antipode",
    "antipode,opentelemetry",
    "opentelemetry,antipode",
    "propagator,opentelemetry,antipode",
    "propagator,antipode,opentelemetry",
]
ROOT = Path(__file__).resolve().parents[3]


def writes_of(*numbers: int, own: tuple[int, ...] = ()) -> list[str]:
    """Writes as tasks note them."""
    return sorted([f"posts:p{n}" for n in numbers] + [f"mine:t{n}" for n in own])


class Worker:
    """A worker, and what its tasks noted."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._since = 0
        self.process = process

    def forget(self) -> None:
        """Begin a test: what was noted so far was of another one."""
        self._since = len(self._noted())

    def _noted(self) -> list[dict[str, Any]]:
        return records_in(self._folder / "notes")

    def notes(self, prefix: str = "") -> list[dict[str, Any]]:
        """What tasks noted so far, in order."""
        return [each for each in self._noted()[self._since :] if each["what"].startswith(prefix)]

    def wait(
        self, prefix: str, count: int = 1, timeout_s: float = TIMEOUT_S
    ) -> list[dict[str, Any]]:
        """The notes of a kind, once there are *count* of them."""

        def there() -> bool:
            assert self.process.poll() is None, self.log
            return len(self.notes(prefix)) >= count

        wait_until(there, what=f"{count} notes {prefix!r}", timeout_s=timeout_s, interval_s=0.02)
        return self.notes(prefix)

    @property
    def log(self) -> str:
        """What the worker wrote."""
        return (self._folder / "worker.out").read_text()


@contextmanager
def publishing(url: str) -> Iterator[None]:
    """This process publishes to the broker at *url*; nothing of it stays there."""
    tasks.app.conf.broker_url = url
    try:
        yield
    finally:
        with tasks.app.connection_for_write() as connection:
            channel: Any = connection.default_channel
            for name in ("tests", tasks.DEAD):
                channel.queue_delete(name)
        pools.reset()
        tasks.app._pool = None
        tasks.app.amqp._producer_pool = None


@contextmanager
def worker(
    folder: Path,
    url: str,
    *,
    pool: str = "prefork",
    concurrency: int = 1,
    order: str = "antipode",
    arguments: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    module: str = tasks.__name__,
) -> Iterator[Worker]:
    """A worker with its pool, ready, which is told to stop at the end.

    *module* has the tasks, in the application of the tests.
    """
    command = [sys.executable, "-m", "celery", "-A", module, "worker"]
    command += ["-P", pool, "-c", str(concurrency), "-l", "info", "--without-gossip"]
    command += ["--without-mingle", "--without-heartbeat", "-n", f"{pool}@test", *arguments]
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "shims")]),
        "ANTIPODE_TEST_FOLDER": str(folder),
        "ANTIPODE_TEST_BROKER": url,
        "ANTIPODE_TEST_ORDER": order,
        **(environment or {}),
    }
    with (folder / "worker.out").open("wb") as output:
        process = subprocess.Popen(
            command, env=surroundings, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    one = Worker(folder, process)
    try:
        wait_until(
            lambda: process.poll() is not None or " ready." in one.log,
            what="the worker",
            timeout_s=TIMEOUT_S,
            interval_s=0.05,
        )
        assert process.poll() is None, one.log
        yield one
    finally:
        tasks.stop_worker(folder)
        try:
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise AssertionError(f"the worker does not end: {one.log}") from error
