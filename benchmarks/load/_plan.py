"""What is sent, and when."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What is sent after a good answer (a status from 200 to 299).

    Attributes:
        url: where to.
        after_ms: for how long a user who has the answer does nothing.
        method: of HTTP.
        headers: by name.
        body: of the request.
        keep_body: whether the body of the answer is recorded.
        cookies: whether cookies of the answer are sent back, as browsers do.
        copied: headers of the answer that are sent along.
    """

    url: str
    after_ms: float = 0.0
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    keep_body: bool = True
    cookies: bool = False
    copied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and what follows it.

    Attributes:
        url: where to.
        method: of HTTP.
        headers: by name.
        body: of the request.
        keep_body: whether the body of the answer is recorded.
        then: what follows a good answer; None: nothing.
    """

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    keep_body: bool = False
    then: FollowUp | None = None


def arrivals(rate: float, *, seed: int) -> Iterator[float]:
    """When requests are due, without end: seconds from the beginning, with exponential gaps.

    Args:
        rate: requests a second, on average.
        seed: the same one gives the same times.
    """
    gaps = random.Random(seed)
    due_s = 0.0
    while True:
        due_s += gaps.expovariate(rate)
        yield due_s


def write(file: TextIO, requests: Sequence[Request], due_s: Sequence[float], warm_up: int) -> None:
    """Write a line for each request."""
    for number, (request, at_s) in enumerate(zip(requests, due_s, strict=True)):
        line = {**asdict(request), "at_s": at_s, "warm_up": number < warm_up}
        file.write(json.dumps(line) + "\n")
