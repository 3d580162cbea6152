"""A library that was used before gevent replaced threads works in workers, and says what may not.

As under ``gunicorn -k gevent --preload``: the master uses it, is forked, and the worker patches.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration._processes import environment

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

pytest.importorskip("redis")
pytest.importorskip("gevent")

PROGRAM = """
import faulthandler, os, sys
import antipode, redis, gevent.events

faulthandler.dump_traceback_later(60, exit=True)  # A native lock stops gevent's timeouts, too.
antipode.configure(barriers="auto", auto_timeout=20, on_stale="raise")
antipode.setup(datastores=f"feed=redis://{sys.argv[1]}, feed=redis://{sys.argv[2]}?reads_from=replica")
writer, reader = (redis.Redis.from_url(f"redis://{each}") for each in sys.argv[1:])

def request(key):
    with antipode.scope():
        writer.set(key, "1")
        return reader.get(key)

assert request("master") == b"1"
if os.fork() == 0:
    import gevent.monkey
    gevent.monkey.patch_all()
    jobs = [gevent.spawn(request, f"worker{number}") for number in range(4)]
    gevent.joinall(jobs)
    os._exit(0 if [each.value for each in jobs] == [b"1"] * 4 else 2)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
@pytest.mark.store("redis")
def test_a_worker_of_gevent_after_a_master_that_used_it(antipode_redis: RedisTopology) -> None:
    """Reads that wait in its greenlets are answered, and a warning says to patch first."""
    antipode_redis.set_lag(100)
    try:
        ran = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-c", PROGRAM),
                *(str(antipode_redis.primary), str(antipode_redis.replica)),
            ],
            env=environment({}),
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    finally:
        antipode_redis.set_lag(0)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("gevent replaced threads after setup()") == 1
