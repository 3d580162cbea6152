"""Requests: trees of stateless services that call each other and stateful ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode import WriteId

from ._assumptions import CALLS_AT_MOST, STORES_IN_ALL

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from ._assumptions import Assumptions

#: Positions in logs that have lived for a while; a byte position of Redis is larger.
_POSITIONS, _OFFSETS = 10**9, 10**12
#: A position of MongoDB is a second and a counter in one number.
_SECONDS, _OPERATIONS = 1_760_000_000, 1_000


@dataclass(slots=True)
class Service:
    """One call of a stateless service.

    Attributes:
        steps: in their order: writes that are dependencies, and calls of other services.
        parallel: whether its calls of others run concurrently.
        fan_out: how many services it calls, stateful ones included.
    """

    steps: list[WriteId | Service] = field(default_factory=list)
    parallel: bool = False
    fan_out: int = 0

    @property
    def writes(self) -> Iterator[WriteId]:
        """The writes that it made itself."""
        return (step for step in self.steps if isinstance(step, WriteId))


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        root: the service that it arrives at.
        services: all calls of stateless services, the root first.
        depth: of the tree of stateless services; 2 where the root alone calls others.
        calls: of stateful services.
        stores: unique stateful services.
        capped: whether the distribution gave more calls than are simulated.
    """

    root: Service
    services: list[Service]
    depth: int
    calls: int
    stores: int
    capped: bool


def draw(assumed: Assumptions, chance: random.Random) -> Request:
    """A request after *assumed*.

    Its numbers of calls and of unique services have the same rank: what is large is large in both.
    """
    rank = min(max(chance.random(), 1e-12), 1 - 1e-12)
    drawn = assumed.calls(rank)
    calls = min(drawn, CALLS_AT_MOST)
    stores = min(assumed.stores(rank), calls)
    services, depth = _services(assumed, chance, calls)
    # A service that has made calls makes the next one more likely: few fan out to many.
    callers = [service for service in services for _ in range(1 + service.fan_out)]
    for write in _calls(assumed, chance, calls, stores):
        caller = chance.choice(callers)
        callers.append(caller)
        caller.fan_out += 1
        if write is not None:
            caller.steps.append(write)
    for service in services:
        chance.shuffle(service.steps)
    return Request(services[0], services, depth, calls, stores, drawn > calls)


def _services(assumed: Assumptions, chance: random.Random, calls: int) -> tuple[list[Service], int]:
    """A tree of stateless services: one path of the depth, and branches that are not deeper."""
    depth = 1 + _geometric(assumed.depth - 1, chance)
    count = max(depth, round(calls / assumed.calls_a_service))
    services = [Service(parallel=chance.random() < assumed.parallel) for _ in range(count)]
    # Those that may call, as often as each is likely, with their levels.
    callers: list[tuple[Service, int]] = []
    caller, level = services[0], 1
    for number, called in enumerate(services[1:], 2):
        if number > depth:
            caller, level = chance.choice(callers)
        caller.steps.append(called)
        caller.fan_out += 1
        callers.append((caller, level))
        if level + 1 < depth:
            callers.append((called, level + 1))
        caller, level = called, level + 1
    return services, depth


def _geometric(mean: float, chance: random.Random) -> int:
    """1 or more."""
    if mean <= 1:
        return 1
    return 1 + int(math.log(1 - chance.random()) / math.log(1 - 1 / mean))


def _calls(
    assumed: Assumptions, chance: random.Random, calls: int, stores: int
) -> list[WriteId | None]:
    """Each call of a stateful service: what it wrote, or None where it is no dependency."""
    numbers = chance.sample(range(STORES_IN_ALL), stores)
    # Services that share a log are called by the same requests.
    writers = [
        _writer(assumed, numbers[place // assumed.services_a_log]) for place in range(stores)
    ]
    # Each is called once at least.
    called = [*range(stores), *(chance.randrange(stores) for _ in range(calls - stores))]
    chance.shuffle(called)
    return [
        writers[place](chance) if chance.random() < assumed.writes else None for place in called
    ]


def _writer(assumed: Assumptions, log: int) -> Callable[[random.Random], WriteId]:
    """What gives the writes of the stateful service with this number their identifiers."""
    # A part of a number's digits decides what it is, so that it is the same in each request.
    spread = log * 0.6180339887498949 % 1
    name = f"{log:x}".rjust(assumed.name_chars, "s")[-assumed.name_chars :]
    if spread < assumed.keyed:
        return lambda chance: WriteId(
            name, f"items/{chance.randrange(10**7)}", chance.randrange(1, _OFFSETS)
        )
    share = (log * 0.7548776662466927) % 1
    if share < assumed.mysql:
        key = f"{log:08x}-baba-4026-9564-{log * 7919:012x}"
        return lambda chance: WriteId(name, key, chance.randrange(1, _POSITIONS))
    if share < assumed.mysql + assumed.redis:
        key = f"{log:040x}"
        return lambda chance: WriteId(name, key, chance.randrange(1, _OFFSETS))
    key = f"rs{log % 100}.{log % 40}"
    return lambda chance: WriteId(
        name, key, (_SECONDS + chance.randrange(10**7) << 32) + chance.randrange(1, _OPERATIONS)
    )
