"""A pause that another thread ends, also one that waits for a descriptor."""

from __future__ import annotations

import select
from contextlib import closing

from antipode.shim import Wake


def readable(wake: Wake) -> bool:
    """Whether who waits for its descriptor is woken now."""
    return bool(select.select([wake.fileno()], [], [], 0)[0])


def test_who_asks_for_a_descriptor_after_it_was_woken_is_woken() -> None:
    """A wake-up is not lost to who learns of the descriptor later, and is forgotten once."""
    with closing(Wake()) as wake:
        wake.set()
        assert readable(wake)
        wake.clear()
        assert not readable(wake)
        wake.set()
        wake.set()
        assert readable(wake)
        wake.clear()
        assert not readable(wake)
        assert not wake.is_set()
