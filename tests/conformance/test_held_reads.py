"""Level 4: reads that a floor holds back. The scripts of barriers are replayed by `test_agent`."""

from __future__ import annotations

from typing import Any

import pytest

import antipode
from antipode import Status
from antipode._barrier.decisions import Policies
from antipode._barrier.floor import Floor
from antipode.shim import Observation
from antipode.testing.agent._scripts import HOUR
from antipode.testing.agent._values import write_of
from tests.conformance import _vectors as vectors

#: What a read may be held back for, in real seconds.
READ_S = 0.1
POLICIES = Policies("raise", "raise", "raise", horizon_h=168, hour=HOUR)


@pytest.mark.parametrize("read", vectors.cases("L4-barrier", "reads"))
def test_read(read: dict[str, Any]) -> None:
    """A read under a floor is answered after the look that shows all, and not before."""
    writes = frozenset(map(write_of, read["writes"]))
    (datastore,) = {write.datastore for write in writes}
    floor = Floor(datastore, writes, timeout_s=READ_S, policies=POLICIES)
    looks = 0

    def observe(timeout_s: float) -> Observation:
        nonlocal looks
        assert timeout_s > 0
        look = read["looks"][min(looks, len(read["looks"]) - 1)]
        looks += 1
        visible = map(write_of, look["visible"])
        return Observation(look["server"], dict.fromkeys(visible, Status.VISIBLE))

    match read["expect"]:
        case {"looks": expected}:
            floor.hold(observe)
            assert looks == expected
        case {"code": code}:
            with pytest.raises(antipode.UnmetError) as raised:
                floor.hold(observe)
            assert raised.value.code == code
        case _:
            raise AssertionError(read)
