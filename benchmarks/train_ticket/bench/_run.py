"""Runs a plan: what is finished is not measured again, and services start only for the rest."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import _maven
from benchmarks._cells import Cells, digest
from benchmarks._machine import ROOT
from benchmarks.load import driver
from benchmarks.train_ticket import _build
from benchmarks.train_ticket._services import Services
from benchmarks.train_ticket._stores import started
from benchmarks.train_ticket._variants import VARIANTS

from ._measure import as_json, measured, of_json
from ._plan import COSTS, LAG_MS, START_S, WARM_UP_RATE, Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.train_ticket._stores import Stores
    from benchmarks.train_ticket._variants import VariantName

    from ._measure import Block

#: Longer than any backlog of the plan: who waits longest is told apart, not cut off.
_PATIENCE_S = 50.0
#: What makes the page of what was measured is no part of that.
_APART = ("_charts.py", "_cli.py", "_figures.py", "_page.py")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a cell.

    Attributes:
        cell: which.
        blocks: of all its variants.
    """

    cell: Cell
    blocks: list[Block]


def code() -> str:
    """A digest of all that is measured."""
    places = ("antipode", "shims/antipode_shims", "benchmarks/train_ticket", "benchmarks/load")
    python = [it for place in places for it in (ROOT / place).rglob("*.py")]
    files = [it for it in python if not (it.parent.name == "bench" and it.name in _APART)]
    files += [*(ROOT / "benchmarks" / "load" / "driver").glob("*.go")]
    java = "".join(_maven.digest(it) for it in (_maven.LIBRARY, _build.SERVICES))
    return digest(ROOT, files) + java[:8] + java[-8:]


def run_all(
    cells: Sequence[Cell],
    kept: Cells,
    *,
    warm_up: int,
    said: Callable[[str], None],
    advance: Callable[[float], None],
) -> list[Found]:
    """Measure the cells that are not there yet; what was found of all.

    Args:
        cells: the plan, in its order.
        kept: where finished cells are.
        warm_up: cancels of each variant before the first cell of a start.
        said: is called with what is under way.
        advance: is called with the expected seconds of what is done.

    Raises:
        TrainTicketError: something is missing or did not start.
        LoadDriverError: the driver cannot be built, or failed.
    """
    found = {it.name: kept.take(it.name, asdict(it)) for it in cells}
    for _, group in groupby(cells, lambda cell: cell.regions):
        together = list(group)
        missing = [it for it in together if found[it.name] is None]
        advance(sum(it.expected_s for it in together if found[it.name] is not None))
        if not missing:
            advance(START_S)
            continue
        with ExitStack() as stack:
            stores, services = _started(stack, missing, warm_up, said)
            advance(START_S)
            for cell in missing:
                said(cell.name)
                blocks = as_json(measured(cell, stores, services))
                kept.keep(cell.name, asdict(cell), blocks)
                found[cell.name] = blocks
                advance(cell.expected_s)
    return [Found(it, of_json(found[it.name] or [])) for it in cells]


def _started(
    stack: ExitStack, cells: Sequence[Cell], warm_up: int, said: Callable[[str], None]
) -> tuple[Stores, Services]:
    """Stores and services of some cells, warm."""
    named = {variant for cell in cells for variant in cell.variants}
    names: tuple[VariantName, ...] = tuple(it for it in COSTS if it in named)
    variants = [VARIANTS[it] for it in names]
    said("building the load driver and the services")
    driver()
    for library in sorted({it.library for it in variants}):
        _build.build(library=library)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="train-ticket-"))
    two_regions = cells[0].regions == 2
    said("starting the stores")
    stores = stack.enter_context(started(two_regions=two_regions))
    said("starting the services")
    services = Services(stores, Path(folder), variants, patience_s=_PATIENCE_S)
    stack.enter_context(services)
    said("warming up")
    measured(
        Cell("warm", "warm", 1, names, WARM_UP_RATE, 0, warm_up, 1, watched=False), stores, services
    )
    if two_regions:
        stores.set_lag(LAG_MS)
    return stores, services
