"""A chain of four services over three kinds of store, each reading what the last wrote elsewhere.

The first store is at home in ``us``, the second in ``eu``, the third in ``us`` again: a value goes
there and back, and whoever reads it does so at the replica of his own region. At the end nothing is
handed on: a last request begins with a read, and knows of the other stores by what lies beside it.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest

import antipode
from tests.end_to_end._xcy_stores import TIMEOUT_S, opened, over

if TYPE_CHECKING:
    from collections.abc import Iterator

At = Literal["now", "read"]

LAG_MS = 8
AT_ONCE = 6
MANY = 3000
FEW = 300
UNGUARDED = 60
#: Every so manyth request deletes in place of updating.
DELETES = 5

TRIPLES = over(("redis", "mysql", "mongodb"))
OTHERS = over(("mongodb", "redis", "mariadb"), ("mariadb", "embedded", "mysql"))


class Chain:
    """The services, for one user whose values are updated and deleted over and over.

    Attributes:
        stale: what reads showed that they must not have shown.
    """

    def __init__(self, stores: list[Any], at: At | None) -> None:
        self._stores = stores
        self._key = f"chain-{uuid.uuid4().hex}"
        self._at: At | None = at
        self.stale: list[str] = []

    def run(self, number: int) -> None:
        """One request through all four, and one that looks back."""
        value = b"" if number % DELETES == 0 else str(number).encode()
        text = self._hop(antipode.serialize(antipode.Lineage()), None, self._stores[0], value)
        for source, target in zip(self._stores, [*self._stores[1:], None], strict=True):
            text = self._hop(text, source, target, value)
        with antipode.scope():
            self._check(self._stores[2], value)
            self._barrier()
            for store in self._stores[:2]:
                self._check(store, value)

    def _hop(self, text: str, source: Any, target: Any, value: bytes) -> str:
        """One service: it is called with a lineage, reads its source, and writes its target."""
        with antipode.scope(text):
            if source is not None:
                self._barrier()
                self._check(source, value)
            if target is not None:
                self._write(target, value)
            return antipode.serialize()

    def _barrier(self) -> None:
        if self._at is not None:
            antipode.barrier(timeout=TIMEOUT_S, at=self._at)

    def _write(self, store: Any, value: bytes) -> None:
        if value:
            store.put(self._key, value)
        else:
            store.delete(self._key)

    def _check(self, store: Any, value: bytes) -> None:
        shown = store.get(self._key)[0] or b""
        if shown != value:
            self.stale.append(f"{store.name} showed {shown!r} in place of {value!r}")


@contextmanager
def lagging(request: pytest.FixtureRequest, kinds: tuple[str, ...]) -> Iterator[list[Any]]:
    """Three stores that replicate with a lag."""
    roles = ("first", "second", "third")
    with opened(request, dict(zip(roles, kinds, strict=True))) as stores:
        for store in stores:
            store.topology.set_lag(LAG_MS)
        yield stores


@pytest.fixture
def stores(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    with lagging(request, request.param) as found:
        yield found


def stale_reads(stores: list[Any], chains: int, at: At | None) -> list[str]:
    """Run so many requests, several users at once; what was stale.

    Args:
        stores: three.
        chains: how many requests.
        at: of the barriers; None: there are none.
    """

    def work(_: int) -> list[str]:
        chain = Chain(stores, at)
        for number in range(1, chains // AT_ONCE + 1):
            chain.run(number)
        return chain.stale

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [each for stale in pool.map(work, range(AT_ONCE)) for each in stale]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stores", TRIPLES, indirect=True)
def test_nothing_is_stale(stores: list[Any]) -> None:
    """In 3,000 requests through four services, no read is stale: each waited for its causes."""
    assert not stale_reads(stores, MANY, "now")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["now", "read"])
@pytest.mark.parametrize("stores", OTHERS, indirect=True)
def test_nothing_is_stale_over_others(stores: list[Any], at: At) -> None:
    """The same over other kinds of store in an order of their own, and where reads wait."""
    assert not stale_reads(stores, FEW, at)


@pytest.mark.parametrize("stores", [*TRIPLES, *OTHERS], indirect=True)
def test_without_barriers_reads_are_stale(stores: list[Any]) -> None:
    """Without barriers the same services show stale values: the chain tells the difference."""
    assert len(stale_reads(stores, UNGUARDED, None)) > UNGUARDED
