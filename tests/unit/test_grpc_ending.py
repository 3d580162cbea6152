"""The end of a gRPC call that its caller and a thread of gRPC see at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("grpc")

import grpc

from antipode import ConfigurationError
from antipode.integrations.grpc import instrument_channel, uninstrument_channel
from antipode.integrations.grpc._channel import Ending, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S, SETTLE_S = 10.0, 0.1


class Call:
    """What is sent; nothing comes of it."""

    def began(self) -> None:
        """It has."""

    def finished(self) -> None:
        """It has."""


class Method:
    """Takes its time to judge an end."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        self.judged = 0

    def raised(self, _call: Any, _inner: Any) -> None:
        """Judge it once `leave` is set."""
        self.entered.set()
        assert self.leave.wait(TIMEOUT_S)
        self.judged += 1


class Future:
    """One of gRPC's that has ended."""

    callback: Callable[[], None]

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Called by the test, as by gRPC's thread."""
        self.callback = callback
        return True

    def done(self) -> bool:
        """It is."""
        return True


def test_who_comes_second_waits_until_it_is_judged() -> None:
    """While gRPC's thread judges the end, its caller is not told of it."""
    method, future, found = Method(), Future(), list[int]()
    ending: Any = Ending(method, Call())  # type: ignore[arg-type]
    watched = Watched(future, ending)

    def look() -> None:
        assert watched.done()
        found.append(method.judged)

    threads = [threading.Thread(target=target) for target in (future.callback, look)]
    threads[0].start()
    assert method.entered.wait(TIMEOUT_S)
    threads[1].start()
    threads[1].join(SETTLE_S)
    assert not found
    method.leave.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert found == [1]
    assert ending.call is None


@pytest.mark.parametrize("given", [None, object(), "localhost:1"])
def test_what_is_no_channel_is_refused(given: Any) -> None:
    """At once, by its name; a channel is not."""
    with pytest.raises(ConfigurationError, match="no channel"):
        instrument_channel(given)
    with grpc.insecure_channel("localhost:1") as channel:
        assert instrument_channel(channel) is channel
        uninstrument_channel(channel)
