"""Every test starts and ends with the library as it is in a new process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate

from antipode._barrier import registry as _registry
from antipode._request import scope as _scope
from antipode._runtime import config as _config
from antipode_testing import wait_until
from tests._leaks import Leaks
from tests._pairwise import *  # noqa: F403 - the hook of the pairs
from tests._tiers import *  # noqa: F403 - the hooks of the tiers
from tests.agent.lending import lend, lender  # noqa: F401 - fixtures of all files

if TYPE_CHECKING:
    from collections.abc import Iterator


# As where it is installed: a claim of the contract suite that fails says what it found.
pytest.register_assert_rewrite("antipode_testing.contract")

# Where `make stores` puts the servers that the system has no package of; installed ones come first.
STORES = Path(__file__).resolve().parents[1] / ".stores" / "bin"
os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(STORES)))

# A shell ignores Ctrl-C for what it starts in the background, and programs inherit that: tests that
# interrupt something would wait for ever, or fail.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEAVES_LOOPS = tuple(map(int, version("pytest-asyncio").split(".")[:2])) < (1, 5)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Close the loop that releases of pytest-asyncio before 1.5 leave behind each test.

    An ``asyncio.run()`` in the next one would drop it unclosed, and fail whatever test is running
    once it is collected.
    """
    if LEAVES_LOOPS:
        policy: Any = asyncio.get_event_loop_policy()
        loop = policy._local._loop  # Asked for by its method, it would be made.
        if loop is not None and not loop.is_running():
            loop.close()
            asyncio.set_event_loop(None)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every garbage collection to come."""
    gc.collect()
    gc.freeze()


LEAKS = pytest.StashKey[Leaks]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch what fixtures start."""
    leaks = session.config.stash[LEAKS] = Leaks()
    session.config.pluginmanager.register(leaks, "antipode-leaks")


@pytest.fixture(autouse=True, scope="module")
def _collected(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a file's tests leave open or running fails there, and not wherever it shows next."""
    leaks = request.config.stash[LEAKS]
    leaks.begin()
    yield
    gc.collect()
    left = leaks.left()
    if left:
        pytest.fail(f"{request.path.name} leaves behind: {'; '.join(left)}", pytrace=False)


#: Threads that end by themselves once their shim is gone.
ENDING = ("antipode-watch", "antipode-fence")


def antipode_threads() -> list[str]:
    """The names of a shim's threads that run now."""
    return [t.name for t in threading.enumerate() if t.name.startswith(ENDING)]


@pytest.fixture(autouse=True)
def _pristine() -> Iterator[None]:
    """No settings, shims, scope or threads of shims survive a test."""
    _config.reset_config()
    _scope.BRANCHED[0] = False  # What no branch ever ran in asks for none.
    propagator = propagate.get_global_textmap()
    token = otel_context.attach(otel_context.Context())
    yield
    otel_context.detach(token)
    propagate.set_global_textmap(propagator)
    for datastore in tuple(_registry._shims):
        _registry.unregister(datastore)
    if (written := sys.modules.get("antipode_shims._sql.own_logs")) is not None:
        written._logs.clear()  # The next test's replica may have the port of this one's primary.
    _config.reset_config()
    wait_until(lambda: not antipode_threads(), what="threads of shims to end", timeout_s=5)
