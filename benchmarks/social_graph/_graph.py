"""Who follows whom: a graph in the shape of the published one, made from a seed.

The original takes a graph of Facebook (socfb-Reed98: 962 users, 18,812 edges), whose data have a
licence of their own. Here each user has a degree of the published distribution and a place on a
circle; who is near is more likely a friend, which makes friends of friends friends (Serrano,
Krioukov, Boguñá, Phys. Rev. Lett. 100, 2008).
"""

from __future__ import annotations

import itertools
import math
import random

USERS = 962
EDGES = 18_812
#: The published degrees: the smallest, percentiles, and the largest.
DEGREES = {0: 1, 10: 6, 25: 14, 50: 29, 75: 54, 90: 87, 95: 108, 99: 157, 100: 313}
#: How much nearer friends are than others; it makes the published clustering.
_NEARNESS = 1.35
#: Who wants many friends finds fewer than that, for there are not so many: they want more.
_FEW = 350

Friendship = tuple[int, int]


def edges(seed: int = 0) -> list[Friendship]:
    """Friendships, each once, the smaller user first; everybody has one at least.

    Args:
        seed: of the graph.
    """
    chance = random.Random(seed)
    degrees = [_degree((user + 0.5) / USERS) for user in range(USERS)]
    chance.shuffle(degrees)
    wanted = [degree * (1 + degree / _FEW) for degree in degrees]
    places = [chance.random() for _ in range(USERS)]
    scored: list[tuple[float, Friendship]] = []
    for one in range(USERS):
        for other in range(one + 1, USERS):
            apart = abs(places[one] - places[other])
            distance = min(apart, 1 - apart) / (wanted[one] * wanted[other])
            luck = chance.random()
            scored.append((distance * (luck / (1 - luck)) ** (1 / _NEARNESS), (one, other)))
    scored.sort()
    taken = [edge for _, edge in scored[:EDGES]]
    return sorted(_with_everybody(taken, [edge for _, edge in scored[EDGES:]]))


def _degree(share: float) -> float:
    """The degree below which that share of the users is."""
    known = sorted(DEGREES.items())
    for (low, least), (high, most) in itertools.pairwise(known):
        if share * 100 <= high:
            part = (share * 100 - low) / (high - low)
            return math.exp(math.log(least) + part * (math.log(most) - math.log(least)))
    return known[-1][1]


def _with_everybody(taken: list[Friendship], left: list[Friendship]) -> list[Friendship]:
    """Give those without a friend the best one left, for the weakest friendships of others."""
    degree = [0] * USERS
    for edge in taken:
        for user in edge:
            degree[user] += 1
    for edge in left:
        if all(degree[user] for user in edge):
            continue
        for index in range(len(taken) - 1, -1, -1):
            if all(degree[user] > 1 for user in taken[index]):
                for user in taken.pop(index):
                    degree[user] -= 1
                break
        taken.append(edge)
        for user in edge:
            degree[user] += 1
    return taken
