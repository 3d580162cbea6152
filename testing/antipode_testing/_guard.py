"""No server outlives the interpreter that started it, however that one ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import threading

# A shell that learns the process groups of running servers and kills what is left of them when its
# input ends: that also happens when this interpreter is killed or leaves by `os._exit`, where no
# handler of ours runs. It must not die of the Ctrl-C that ends the tests.
_SCRIPT = """
trap '' INT TERM HUP
groups=
while read -r verb group; do
  kept=
  for known in $groups; do [ "$known" = "$group" ] || kept="$kept $known"; done
  groups=$kept
  [ "$verb" = add ] && groups="$groups $group"
done
for known in $groups; do kill -s KILL -- "-$known"; done
"""


class Guard:
    """Keeps the list of process groups to kill when this interpreter ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._watcher: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def add(self, group: int) -> None:
        """Kill this process group at the end, unless it is removed before."""
        with self._lock:
            if self._watcher is None:
                self._owner = os.getpid()
                self._watcher = _start_watcher()
                atexit.register(self.close)
            self._groups.add(group)
            self._tell("add", group)

    def remove(self, group: int) -> None:
        """Forget a process group that has ended; its number may be another's tomorrow."""
        with self._lock:
            self._groups.discard(group)
            self._tell("remove", group)
            if not self._groups:
                self._end_watcher()

    def close(self) -> None:
        """Kill what is left. A forked child inherits this handler, but not the servers."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            for group in self._groups:
                kill_group(group, signal.SIGKILL)
            self._groups.clear()
            self._end_watcher()

    def _tell(self, verb: str, group: int) -> None:
        if self._watcher is None or self._watcher.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._watcher.stdin.write(f"{verb} {group}\n".encode())
            self._watcher.stdin.flush()

    def _end_watcher(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return
        atexit.unregister(self.close)
        watcher.communicate()


def _start_watcher() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_group(group: int, number: signal.Signals) -> None:
    """Signal a process group; one that has ended is not an error."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


GUARD = Guard()
