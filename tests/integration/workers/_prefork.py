"""The service with Flask, whose master process waits while its workers are forked."""

from __future__ import annotations

import threading

import antipode
from tests.integration.workers._flask import app, primary

__all__ = ["app"]


def wait(before: threading.Event) -> None:
    """Wait at the replica, again and again."""
    while True:
        with antipode.scope():
            primary.set("master", "value")
            antipode.barrier(timeout=20, on_unmet="return")
        before.set()


waited = threading.Event()
threading.Thread(target=wait, args=(waited,), daemon=True).start()
waited.wait(20)
