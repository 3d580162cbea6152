"""Which tests run in one process, so that the servers of a store start once a run.

A test goes to the group of the dearest store that it needs, by its marks ``store`` and by the
fixtures of topologies that it asks for. A store whose tests alone would end long after all others
has several groups, of whole classes and files: its servers start once in each of them. Tests
without a server are grouped by file, and fill the time of workers that are free.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests._costs import plain
from tests._durations import function_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests._durations import Slow

__all__ = ["chunks", "group", "store_of"]

#: Those whose servers take longest to start come first.
DEAREST = (
    "seaweedfs",
    "activemq",
    "rabbitmq",
    "mysql",
    "mariadb",
    "mongodb",
    "postgresql",
    "sns",
    "dynamodb",
    "s3",
    "redis",
)
FIXTURE = "antipode_"
#: A test that is not in the list of the slow ones: with servers, and without.
WITH_SERVERS_S, ALONE_S = 0.2, 0.01


def store_of(marked: Iterable[str], fixtures: Iterable[str]) -> str | None:
    """The dearest store that a test needs, if any."""
    topologies = (name.removeprefix(FIXTURE) for name in fixtures if name.startswith(FIXTURE))
    needed = {*marked, *topologies}
    return next((store for store in DEAREST if store in needed), None)


def chunks(weights: Mapping[str, float], limit_s: float) -> Iterator[list[str]]:
    """Put units into groups of at most *limit_s* each, in order; a larger unit stays whole."""
    chunk: list[str] = []
    sum_s = 0.0
    for unit, weight_s in weights.items():
        if chunk and sum_s + weight_s > limit_s:
            yield chunk
            chunk, sum_s = [], 0.0
        chunk.append(unit)
        sum_s += weight_s
    if chunk:
        yield chunk


def group(items: list[pytest.Item], workers: int, slow: Mapping[str, Slow]) -> None:
    """Mark each test with its group, and put the dearest groups first.

    None is to take more than half of what a worker has to do.
    """
    weights = _weights(items, slow)
    units: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for item in items:
        units[_store(item) or ""][_unit(item)] += weights[item.nodeid]
    limit_s = sum(weights.values()) / workers / 2
    names: dict[tuple[str, str], str] = {}
    for store, weighed in units.items():
        if store:
            for number, chunk in enumerate(chunks(weighed, limit_s)):
                names.update({(store, unit): f"{store}-{number}" for unit in chunk})
    groups: dict[pytest.Item, str] = {}
    group_s: dict[str, float] = defaultdict(float)
    for item in items:
        unit = _unit(item)
        name = groups[item] = names.get((_store(item) or "", unit), unit)
        group_s[name] += weights[item.nodeid]
        item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=lambda item: (-group_s[groups[item]], groups[item]))


def _store(item: pytest.Item) -> str | None:
    marked = {name for mark in item.iter_markers("store") for name in mark.args}
    return store_of(marked, getattr(item, "fixturenames", ()))


def _unit(item: pytest.Item) -> str:
    """The class of a test with servers, since its file can be as long as a run; or the file."""
    file, *inner = function_of(plain(item.nodeid)).split("::")
    return "::".join([file, *inner[:-1]]) if _store(item) else file


def _weights(items: list[pytest.Item], slow: Mapping[str, Slow]) -> dict[str, float]:
    """Seconds that each test is expected to take."""
    together: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        together[function_of(item.nodeid)].append(item)
    return {
        item.nodeid: slow[function].together_s / len(each)
        if function in slow
        else (WITH_SERVERS_S if _store(item) else ALONE_S)
        for function, each in together.items()
        for item in each
    }
