"""Of a product of parameters a few cases stand for all pairs, and nothing is lost."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest

from tests._pairwise import covering

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytest_plugins = ["pytester"]

PRODUCTS = [
    [3, 2, 2],
    [8, 2, 2, 2],
    [5, 4],
    [15, 2, 2],
    [4, 4, 4, 4],
]

FIXTURES = """
    import pytest

    @pytest.fixture(params=["mysql", "mariadb"])
    def server(request):
        return request.param

    @pytest.fixture(params=[("mysql", 0), ("mysql", 1), ("mariadb", 0), ("mariadb", 1)])
    def place(request):
        return request.param

    client = pytest.mark.parametrize("client", ["a", "b", "c"])
    statement = pytest.mark.parametrize(("statement", "found"), [("x", 1), ("y", 1), ("y", 2)])
"""


def cases_of(sizes: Sequence[int]) -> list[dict[str, object]]:
    """A full product of so many values of each parameter."""
    return [dict(zip("abcd", each, strict=False)) for each in product(*map(range, sizes))]


def pairs(cases: Sequence[Mapping[str, object]]) -> set[object]:
    """All pairs of values that occur in *cases*."""
    return {pair for case in cases for pair in combinations(sorted(case.items()), 2)}


@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_every_pair_is_covered_by_few(sizes: Sequence[int]) -> None:
    """By hardly more than the two longest axes need."""
    cases = cases_of(sizes)
    chosen = [cases[index] for index in covering(cases)]
    first, second = sorted(sizes)[-2:]
    assert pairs(chosen) == pairs(cases)
    assert first * second <= len(chosen) <= 1.5 * first * second


@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_no_case_is_needless(sizes: Sequence[int]) -> None:
    """Without any of them a pair is missing."""
    chosen = covering(cases := cases_of(sizes))
    for one in chosen:
        assert pairs([cases[index] for index in chosen if index != one]) < pairs(cases)


def test_pairs_that_cannot_be_are_not_sought() -> None:
    """Of combinations that are excluded, the rest is covered all the same."""
    cases = [case for case in cases_of([4, 3, 2]) if case["a"] != 0 or case["b"] == case["c"] == 0]
    chosen = [cases[index] for index in covering(cases)]
    assert pairs(chosen) == pairs(cases)
    assert len(chosen) < len(cases)


def test_functions_with_other_parameters_share_pairs() -> None:
    """A pair that one function shows need not be shown by another."""
    cases: list[dict[str, object]] = [
        {"": name, "client": client, "server": server}
        for name in "pqr"
        for client in range(3)
        for server in range(2)
    ]
    assert len(covering(cases)) == 9


def tiers(pytester: pytest.Pytester, functions: str) -> tuple[list[list[str]], list[list[str]]]:
    """The parameters of the cases by day, and of those by night, of a file of *functions*."""
    pytester.makepyfile(FIXTURES + functions)
    pytester.makeconftest("from tests._pairwise import *")
    pytester.makeini(
        "[pytest]\nmarkers =\n    pairwise\n    nightly\n"
        "asyncio_default_fixture_loop_scope = function\n"
    )
    items, _ = pytester.inline_genitems("--strict-markers")
    of_tiers: tuple[list[list[str]], list[list[str]]] = ([], [])
    for each in items:
        by_night = each.get_closest_marker("nightly") is not None
        of_tiers[by_night].append(each.name.rstrip("]").replace("[", "-").split("-"))
    return of_tiers


def test_a_product_is_whole_over_its_tiers(pytester: pytest.Pytester) -> None:
    """By day every statement with every client and with every server; by night the rest."""
    by_day, by_night = tiers(
        pytester,
        """
    @client
    @statement
    @pytest.mark.pairwise
    def test_product(server, client, statement, found):
        pass
        """,
    )
    assert len(by_day) == len(by_night) == 9
    assert len({tuple(each[2:]) for each in by_day}) == 9
    assert len({(each[1], *each[2:4]) for each in by_day}) == 6


def test_what_skips_itself_stands_for_nothing(pytester: pytest.Pytester) -> None:
    """It is nightly; what does not skip has all pairs that are left."""
    by_day, by_night = tiers(
        pytester,
        """
    @client
    @statement
    @pytest.mark.pairwise(skips=lambda of: of["server"] == "mysql" and of["found"] == 2)
    def test_skips(server, client, statement, found):
        pass
        """,
    )
    skips = [each for each in by_night if each[1] == "mysql" and each[2:4] == ["y", "2"]]
    assert len(skips) == 3
    assert len([each for each in by_day if each[2:4] == ["y", "2"]]) == 3
    assert len(by_day) + len(by_night) == 18


def test_tuples_may_be_several_parameters(pytester: pytest.Pytester) -> None:
    """Each statement by each server and at each place of its two, and not at all four."""
    by_day, by_night = tiers(
        pytester,
        """
    @statement
    @pytest.mark.pairwise(split=["place"])
    def test_split(place, statement, found):
        pass
        """,
    )
    assert (len(by_day), len(by_night)) == (6, 6)


def test_without_the_mark_nothing_is_nightly(pytester: pytest.Pytester) -> None:
    """Nor what has no parameters."""
    by_day, by_night = tiers(
        pytester,
        """
    @client
    @statement
    def test_whole(server, client, statement, found):
        pass

    @pytest.mark.pairwise
    def test_alone():
        pass
        """,
    )
    assert (len(by_day), len(by_night)) == (19, 0)


def test_a_claim_is_made_with_each_value(pytester: pytest.Pytester) -> None:
    """Although pairs of values are shown by other functions; in classes, too."""
    by_day, by_night = tiers(
        pytester,
        """
    @pytest.mark.pairwise
    class TestClaims:
        @client
        def test_one(self, server, client):
            pass

        @client
        def test_another(self, server, client):
            pass
        """,
    )
    for name in ("test_one", "test_another"):
        of_claim = [each for each in by_day if each[0] == name]
        assert {each[1] for each in of_claim} == {"mysql", "mariadb"}
        assert {each[2] for each in of_claim} == {"a", "b", "c"}
        assert len(of_claim) == 3
    assert len(by_night) == 6
