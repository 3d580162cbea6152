"""No container outlives the interpreter that started it, however that one ends."""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
import uuid

LABEL_NAME = "antipode_testing.session"
SESSION = uuid.uuid4().hex
LABEL = {LABEL_NAME: SESSION}
# A shell that removes what is left when its input ends: that also happens when this interpreter is
# killed. It must not die of the Ctrl-C that ends the tests.
_SCRIPT = f"""
trap '' INT TERM HUP
cat
left=$(docker ps --all --quiet --filter label={LABEL_NAME}={SESSION})
[ -z "$left" ] || docker rm --force --volumes $left
"""


class ContainerGuard:
    """Keeps a watcher for as long as this interpreter has containers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[object] = set()
        self._watcher: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def add(self, server: object) -> None:
        """Remove this server's container at the end, unless `remove` comes before."""
        with self._lock:
            self._held.add(server)
            if self._watcher is None:
                self._owner = os.getpid()
                self._watcher = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                atexit.register(self.close)

    def remove(self, server: object) -> None:
        """Forget a server whose container is removed."""
        with self._lock:
            self._held.discard(server)
            if not self._held:
                self._end_watcher()

    def close(self) -> None:
        """Remove what is left. A forked child inherits this handler, but not the containers."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._held.clear()
            self._end_watcher()

    def _end_watcher(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            atexit.unregister(self.close)
            watcher.communicate()


GUARD = ContainerGuard()
