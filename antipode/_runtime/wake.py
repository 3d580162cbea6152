"""What ends a pause early."""

from __future__ import annotations

import contextlib
import socket
import threading


class Wake:
    """Ends a pause early. Thread-safe; has a file descriptor for use with ``select``."""

    def __init__(self) -> None:
        """Start unset, without file descriptors until one is asked for."""
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._pair: tuple[socket.socket, socket.socket] | None = None

    def set(self) -> None:
        """End the pause, or the next one."""
        with self._lock:
            self._event.set()
            if self._pair is not None:
                with contextlib.suppress(BlockingIOError):  # Full: readable already.
                    self._pair[1].send(b"\0")

    def clear(self) -> None:
        """Forget earlier wake-ups."""
        with self._lock:
            self._event.clear()
            if self._pair is not None:
                with contextlib.suppress(BlockingIOError):
                    while self._pair[0].recv(4096):
                        pass

    def is_set(self) -> bool:
        """Whether a wake-up is pending."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Pause for *timeout_s* seconds or until woken; True when woken."""
        return self._event.wait(timeout_s)

    def fileno(self) -> int:
        """A descriptor that becomes readable when woken."""
        with self._lock:
            if self._pair is None:
                self._pair = socket.socketpair()
                for end in self._pair:
                    end.setblocking(False)  # noqa: FBT003 - socket's own signature
                if self._event.is_set():
                    self._pair[1].send(b"\0")
            return self._pair[0].fileno()

    def close(self) -> None:
        """Release the descriptors."""
        with self._lock:
            if self._pair is not None:
                for end in self._pair:
                    end.close()
                self._pair = None
