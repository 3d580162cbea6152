"""Instrumented objects: of a subclass of their class, and of that class again afterwards."""

from __future__ import annotations

from typing import Any

from antipode.shim import adopt, disown


class Client:
    """What a client library has."""

    def call(self) -> str:
        """Answer."""
        return "plain"


class Loud:
    """What an instrumented client has besides."""

    _antipode: str

    def call(self) -> str:
        """Answer otherwise."""
        one: Any = self
        return f"{self._antipode} {one._antipode_call()}"


DIRECT = (("_antipode_call", "call"), ("_antipode_missing", "no_such_method"))


def test_an_adopted_object_stays_what_it_was() -> None:
    """The same object of a subclass of its class, with its name; adopted twice, adopted once."""
    client = Client()
    assert adopt(client, Loud, "loud", direct=DIRECT) is client
    assert client.call() == "loud plain"
    assert isinstance(client, Client)
    assert type(client).__name__ == "Client"
    assert not hasattr(client, "_antipode_missing")
    adopted = type(client)
    adopt(client, Loud, "louder", direct=DIRECT)
    assert type(client) is adopted
    assert client.call() == "louder plain"
    assert type(adopt(Client(), Loud, "loud", direct=DIRECT)) is adopted


def test_nothing_is_left_of_a_disowned_object() -> None:
    """Its class is what it was, and so are its attributes."""
    client: Any = Client()
    client.own = 1
    adopt(client, Loud, "loud")
    client._antipode_later = 2
    disown(client, Loud)
    assert type(client) is Client
    assert vars(client) == {"own": 1}
