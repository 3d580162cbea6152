"""Ctrl-C comes after a child process is known, never between its start and that."""

from __future__ import annotations

import signal
import threading

import pytest

from antipode_testing import uninterrupted


def test_an_interrupt_comes_at_the_end() -> None:
    """Ctrl-C inside the block is raised once, behind it; the handler is what it was."""
    before = signal.getsignal(signal.SIGINT)
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - which statement raises is the claim
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("block")
        done.append("behind")
    assert done == ["block"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_block_is_told() -> None:
    """The block's own error comes out, and the handler is what it was."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(OSError, match="no such program"), uninterrupted():
        raise OSError("no such program")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored() -> None:
    """A program that was started to outlive Ctrl-C hands that on to its servers."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_are_left_alone() -> None:
    """They run no handlers: the block runs as it is."""
    seen: list[object] = []

    def run() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
