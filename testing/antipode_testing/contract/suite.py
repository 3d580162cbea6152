"""The contract suite: what every shim owes its users, as tests to subclass."""

from __future__ import annotations

from typing import ClassVar

import pytest

from .automatic import AutomaticContract
from .base import CATEGORIES, ContractBase
from .dry import DryRunContract
from .faults import FaultContract
from .promises import PromiseContract
from .stored import StoredContract
from .wait import WaitContract


class ShimContract(
    WaitContract,
    AutomaticContract,
    PromiseContract,
    StoredContract,
    FaultContract,
    DryRunContract,
    ContractBase,
):
    """Subclass it as ``Test...`` and give it a fixture ``store``, a `ContractStore`.

    The docstring of each test is a claim of ``docs/spec/shim-contract.md``. A shim that cannot
    keep the claims of a category says so, with the reason, which shows in the test report::

        class TestMine(ShimContract):
            opt_outs = {"partial_updates": "its values have no parts"}

            @pytest.fixture
            def store(self):
                with MyTopology() as topology:
                    yield ContractStore(topology, writer=..., reader=...)

    Attributes:
        opt_outs: by category, why its claims do not apply.
        categories: all names that there are.
    """

    opt_outs: ClassVar[dict[str, str]] = {}
    categories: ClassVar[tuple[str, ...]] = CATEGORIES

    def __init_subclass__(cls) -> None:
        """Refuse opt-outs that say nothing, when the class is collected.

        Raises:
            pytest.UsageError: an unknown category, or an empty reason.
        """
        super().__init_subclass__()
        for category, reason in cls.opt_outs.items():
            if category not in CATEGORIES:
                known = ", ".join(CATEGORIES)
                raise pytest.UsageError(
                    f"{cls.__name__} opts out of unknown category {category!r}; known: {known}"
                )
            if not isinstance(reason, str) or not reason.strip():
                raise pytest.UsageError(f"{cls.__name__} opts out of {category!r} without a reason")

    @pytest.fixture(autouse=True)
    def _opted_out(self, request: pytest.FixtureRequest) -> None:
        """Skip what the subclass opted out of, before its store is even started."""
        for category in getattr(request.function, "categories", ()):
            if category in self.opt_outs:
                pytest.skip(f"opted out of {category}: {self.opt_outs[category]}")
