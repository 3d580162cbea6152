"""Few claims of the contract suite for all, where another run holds all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from antipode_testing import ShimContract

if TYPE_CHECKING:
    from collections.abc import Callable

_Class = TypeVar("_Class", bound=type[ShimContract])


def claims_of(cls: type[ShimContract]) -> dict[str, Any]:
    """The claims that a class does not opt out of, by name."""
    found = {name: getattr(cls, name) for name in dir(cls) if name.startswith("test_")}
    return {
        name: claim
        for name, claim in found.items()
        if claim is not None and cls.opt_outs.keys().isdisjoint(claim.categories)
    }


def sample(cls: type[ShimContract], number: int) -> list[str]:
    """The names of *number* claims: next is the one with most categories that none has yet.

    Of several with as many the first by name: the choice changes with the suite alone.
    """
    claims, covered, chosen = claims_of(cls), set[str](), list[str]()
    while len(chosen) < number:
        best = max(claims, key=lambda name: len(set(claims[name].categories) - covered))
        covered.update(claims.pop(best).categories)
        chosen.append(best)
    return chosen


def sampled(number: int) -> Callable[[_Class], _Class]:
    """Leave a class *number* of its claims."""

    def leave(cls: _Class) -> _Class:
        chosen = sample(cls, number)
        for name in dir(cls):
            if name.startswith("test_") and name not in chosen:
                setattr(cls, name, None)
        return cls

    return leave
