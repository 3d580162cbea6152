"""The same call in a request that depends on three writes. Either side carries baggage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import _grpc
from ._grpc import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["calling", "serve"]

_HOUR = 490_000


def calling(port: int, *, antipode: bool) -> AbstractContextManager[Callable[[], None]]:
    """The same call to either side, with baggage of the same length."""
    return _grpc.calling(port, antipode=antipode, request=_request(antipode=antipode))


@contextmanager
def _request(*, antipode: bool) -> Iterator[None]:
    from opentelemetry import baggage, context

    from antipode import Lineage, WriteId, scope, serialize

    lineage = Lineage(
        (
            WriteId("posts", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 1_234_567, written_hour=_HOUR),
            WriteId("users", "8c1e6f0b2d9a4e57b3f8a1c6d5e4f3a2b1c0d9e8", 8_765, written_hour=_HOUR),
            WriteId("news", "rs0.3", 7_300_000_000_000_000_001, written_hour=_HOUR),
        )
    )
    if antipode:
        with scope(lineage):
            yield
        return
    token = context.attach(baggage.set_baggage("antipode", serialize(lineage)))
    try:
        yield
    finally:
        context.detach(token)
