"""The graph of the social network has the published shape."""

from __future__ import annotations

import statistics
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from benchmarks.social_graph._graph import DEGREES, EDGES, USERS, edges

if TYPE_CHECKING:
    from benchmarks.social_graph._graph import Friendship

#: Of the published mean, over users with two friends or more.
CLUSTERING = 0.330


@pytest.fixture(scope="module")
def friends(graph: list[Friendship]) -> list[set[int]]:
    """The friends of each user."""
    found: list[set[int]] = [set() for _ in range(USERS)]
    for one, other in graph:
        found[one].add(other)
        found[other].add(one)
    return found


@pytest.mark.slow
def test_it_has_the_published_numbers_of_users_and_friendships(
    graph: list[Friendship], friends: list[set[int]]
) -> None:
    """962 users, 18,812 friendships, each once; everybody can be reached from everybody."""
    assert len(set(graph)) == len(graph) == EDGES == 18_812
    assert USERS == 962
    assert all(one < other for one, other in graph)
    reached, left = {0}, [0]
    while left:
        more = friends[left.pop()] - reached
        reached |= more
        left += more
    assert len(reached) == USERS


@pytest.mark.slow
def test_degrees_and_clustering_are_as_published(friends: list[set[int]]) -> None:
    """Each percentile of the degrees within a seventh, or one, and the clustering within 0.02."""
    degrees = sorted(len(each) for each in friends)
    for percent, published in DEGREES.items():
        found = degrees[min(int(percent / 100 * USERS), USERS - 1)]
        assert abs(found - published) <= max(published / 7, 1), percent
    shares = [
        sum(other in friends[one] for one, other in combinations(each, 2))
        / (len(each) * (len(each) - 1) / 2)
        for each in friends
        if len(each) > 1
    ]
    assert statistics.mean(shares) == pytest.approx(CLUSTERING, abs=0.02)


@pytest.mark.ci
@pytest.mark.slow
def test_a_seed_makes_the_same_graph(graph: list[Friendship]) -> None:
    """The same from the same seed, and another from another."""
    assert edges(0) == graph
    assert edges(1) != graph
