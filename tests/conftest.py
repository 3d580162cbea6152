"""Every test starts and ends with the library as it is in a new process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate

from antipode import _config, _registry
from antipode.testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


# Where `make stores` puts the servers that the system has no package of; installed ones come first.
STORES = Path(__file__).resolve().parents[1] / ".stores" / "bin"
os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(STORES)))


def antipode_threads() -> list[str]:
    """The names of the library's threads that run now."""
    return [t.name for t in threading.enumerate() if t.name.startswith("antipode-watch")]


@pytest.fixture(autouse=True)
def _pristine() -> Iterator[None]:
    """No settings, shims, scope or watcher threads survive a test."""
    _config.reset_config()
    propagator = propagate.get_global_textmap()
    token = otel_context.attach(otel_context.Context())
    yield
    otel_context.detach(token)
    propagate.set_global_textmap(propagator)
    for datastore in tuple(_registry._shims):
        _registry.unregister(datastore)
    _config.reset_config()
    wait_until(lambda: not antipode_threads(), what="watchers to end", timeout_s=5)
