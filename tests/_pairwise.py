"""Pairs instead of products: where clients, servers and statements are multiplied.

``@pytest.mark.pairwise`` is for functions, classes and files whose parameters act each by itself
or two at a time. Of the cases that a file or a class has under this mark, a few keep their tier:
those in which every pair of values of any two parameters occurs. The function is a parameter as
well: each claim is still tested with every value. All other cases are of the tier ``nightly``
(``tests/_tiers.py``), so that over all tiers the product is whole. A claim in which three
parameters act together has no mark.

A value is the same in two functions if its text and the name of its parameter are. Arguments of
the mark:

- ``skips``: a function of a case's parameters that says whether it skips itself. Such a case
  stands for no pair.
- ``split``: names of parameters whose values are tuples, of which each element counts by itself.

allpairspy, the library for this, loses pairs where combinations are excluded, and makes cases of
axes, where pytest has made them already.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

__all__ = ["pytest_make_collect_report"]


def covering(cases: Sequence[Mapping[str, object]]) -> list[int]:
    """Which few of *cases* have every pair of values that any of them has; in their order.

    The same for the same cases: each step takes the first one of those with the most new pairs.
    """
    pairs = [
        frozenset(combinations_with_replacement(sorted(case.items(), key=lambda axis: axis[0]), 2))
        for case in cases
    ]
    missing = set[object]().union(*pairs)
    chosen: list[int] = []
    while missing:
        best = max(range(len(cases)), key=lambda index: len(pairs[index] & missing))
        chosen.append(best)
        missing -= pairs[best]
    for index in tuple(chosen):  # What was taken early may be needed no more.
        others = set[object]().union(*(pairs[other] for other in chosen if other != index))
        if pairs[index] <= others:
            chosen.remove(index)
    return sorted(chosen)


def axes(function: pytest.Function, split: Sequence[str]) -> dict[str, object]:
    """The function and its parameters; those that one ``parametrize`` gives together are one."""
    values = {name: repr(value) for name, value in parameters(function).items()}
    found: dict[str, object] = {"": function.originalname}
    for mark in function.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        found[",".join(names)] = tuple(values.pop(name) for name in names)
    for name in split:
        if values.pop(name, None):
            parts = parameters(function)[name]
            found |= {f"{name}[{index}]": repr(part) for index, part in enumerate(parts)}
    return found | values


def parameters(function: pytest.Function) -> Mapping[str, Any]:
    """The parameters of a case by their names, of fixtures as well."""
    return function.callspec.params if hasattr(function, "callspec") else {}


def rest(functions: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Those with the mark that the others stand for."""
    cases: list[Mapping[str, object]] = []
    candidates, left = [], []
    for function in functions:
        if mark := function.get_closest_marker("pairwise"):
            if mark.kwargs.get("skips", lambda _: False)(parameters(function)):
                left.append(function)
            else:
                candidates.append(function)
                cases.append(axes(function, mark.kwargs.get("split", ())))
    chosen = set(covering(cases))
    return left + [each for index, each in enumerate(candidates) if index not in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Mark what is nightly where a file is read whole, whatever of it is run."""
    report = yield
    functions = [each for each in report.result or () if isinstance(each, pytest.Function)]
    for function in rest(functions):
        function.add_marker("nightly")
    return report
