"""What a test left open is named, with who holds it: a number alone says nobody what to mend."""

from __future__ import annotations

import socket

from antipode_testing import LagProxy, wait_until

from ._census import Census


class Keeper:
    """Who forgot to close something."""

    def __init__(self, sock: socket.socket) -> None:
        self.kept = {"somewhere": [sock]}


def test_a_forgotten_connection_is_told_by_its_ends_and_its_holder() -> None:
    """A socket that stays open makes the census grow, and the line about it says all there is."""
    with LagProxy(("127.0.0.1", 9)) as proxy:
        before = Census.take()
        keeper = Keeper(socket.create_connection(proxy.address))
        local = keeper.kept["somewhere"][0].getsockname()[1]
        (line,) = (
            each
            for each in before.growth({proxy.address.port: "the proxy"})
            if f"port {local} to {proxy.address.port} (the proxy)" in each
        )
        assert line.endswith(f"held by socket.socket of {Keeper.__module__}.Keeper")
        keeper.kept["somewhere"].pop().close()
        wait_until(lambda: not before.grown(), what="the proxy to let go", timeout_s=5)


def test_what_is_open_already_is_not_growth() -> None:
    """A descriptor or a thread of before is not counted, and one that has gone neither."""
    with LagProxy(("127.0.0.1", 9)):
        before = Census.take()
        assert not before.grown()
    assert not before.grown()
    assert before.growth({}) == []
