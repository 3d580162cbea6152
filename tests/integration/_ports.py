"""Ports of this machine on which nobody listens."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from antipode_testing._address import ReservedPort

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def refused_port() -> Iterator[int]:
    """One that refuses connections for as long as the block lasts: no other program gets it."""
    with closing(ReservedPort()) as port:
        yield port.address.port
