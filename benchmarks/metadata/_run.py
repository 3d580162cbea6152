"""Many requests, in blocks that any number of processes can share out."""

from __future__ import annotations

import logging
import random
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING

import antipode
from antipode import Lineage

from ._figures import Figures, Texts
from ._travel import travel
from ._trees import draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._assumptions import Assumptions

#: Requests that are drawn from one seed: the same whoever draws them.
BLOCK = 1_000
#: What no lineage's text exceeds.
_WITHOUT_BOUND = 1 << 24


def quiet() -> None:
    """Leave out the warning of each process that a text was shortened: that is counted here."""
    logging.getLogger("antipode").setLevel(logging.ERROR)


def run(
    assumed: Assumptions,
    requests: int,
    *,
    seed: int,
    processes: int,
    advance: Callable[[int], None],
) -> Figures:
    """The figures of so many requests after *assumed*, the same for each number of processes."""
    figures = Figures()
    blocks = [(assumed, seed, number, count) for number, count in _blocks(requests)]
    if processes == 1:
        for block in blocks:
            figures.add(_block(*block))
            advance(block[-1])
        return figures
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=quiet) as pool:
        waited = {pool.submit(_block, *block): block[-1] for block in blocks}
        try:
            for done in as_completed(waited):
                figures.add(done.result())
                advance(waited[done])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return figures


def _blocks(requests: int) -> Iterator[tuple[int, int]]:
    """The number of each block, and how many requests it has."""
    for number, begin in enumerate(range(0, requests, BLOCK)):
        yield number, min(BLOCK, requests - begin)


def _block(assumed: Assumptions, seed: int, number: int, requests: int) -> Figures:
    """One block."""
    chance = random.Random(f"{seed} {number}")
    figures = Figures()
    for _ in range(requests):
        request = draw(assumed, chance)
        figures.drawn(request)
        texts = Texts(figures)
        began_s = time.process_time()
        travel(request.root, texts, answers=assumed.answers)
        figures.processor_s += time.process_time() - began_s
        texts.end()
        whole = Lineage(write for service in request.services for write in service.writes)
        figures.ended(antipode.serialize(whole, max_bytes=_WITHOUT_BOUND))
    return figures
