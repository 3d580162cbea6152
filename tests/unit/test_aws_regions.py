"""The library's own clients of AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import Observation
from antipode_shims._aws.regions import Regions

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from antipode import WriteId


class Client:
    """Connects with each request, until it is closed."""

    connected = False

    def request(self) -> None:
        self.connected = True

    def close(self) -> None:
        self.connected = False


class Settings:
    """Of an application's client."""

    region, endpoint_url, is_aws = "us", "http://us", False

    def __init__(self) -> None:
        self.made: list[Client] = []

    def connect(self, *_: object) -> Client:
        self.made.append(Client())
        return self.made[-1]


class Question:
    region = ""


class ClosedMeanwhile(Regions):
    """Closed by another thread between two requests of a poll."""

    service = "none"

    def look(self, writes: Collection[WriteId]) -> Generator[Any, Any, Observation]:
        yield Question()
        return Observation("us", {})

    def read(self, client: Any, question: Any) -> object:
        client.request()
        self.close()
        client.request()
        return {}


def test_no_connection_outlives_a_close_amid_a_poll() -> None:
    """Neither one that the poll made since, nor one of a poll that began after."""
    settings: Any = Settings()
    regions = ClosedMeanwhile(settings, {})
    for _ in range(2):
        regions.observe([])
    assert [client.connected for client in settings.made] == [False, False]
