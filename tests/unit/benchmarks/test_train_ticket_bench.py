"""The benchmark of TrainTicket without services: what is kept, and what figures come to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks._cells import Cells
from benchmarks.judge import FAILED, INCONCLUSIVE, SHOWN
from benchmarks.train_ticket.bench._figures import missing, ratio, verdict
from benchmarks.train_ticket.bench._measure import Block
from benchmarks.train_ticket.bench._plan import COMPARED, FULL, QUICK, Cell, plan
from benchmarks.train_ticket.bench._run import Found

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.train_ticket._variants import VariantName

#: answered, right, told, exposed, early.
WAITED, LACKING = "11110", "10110"
PROOF = Cell("proof-2", "proof", 2, COMPARED, 20, 0, 2, 1)


def _block(variant: VariantName, trials: list[str], block: int = 0, us: float = 100.0) -> Block:
    return Block(
        variant=variant,
        block=block,
        cancels=len(trials),
        trials=trials,
        errors={},
        cancel_ms=[],
        look_up_ms=[],
        window_ms=[],
        late_ms=[],
        throughput=1.0,
        cpu_us={"cancel": us},
        driver_late_ms=0.0,
        money_adds_up=True,
        money="",
    )


def _proof(baseline: list[str], guarded: list[str]) -> Found:
    blocks = [_block(it, baseline if it == "baseline" else guarded) for it in COMPARED]
    return Found(PROOF, blocks)


def test_a_cell_is_taken_again_only_of_the_same_code_and_options(tmp_path: Path) -> None:
    """What other code found, or of other options, or half a file, is measured again."""
    kept = Cells(tmp_path, "code")
    kept.keep("a", {"rate": 1}, [{"x": 1}])
    assert Cells(tmp_path, "code").take("a", {"rate": 1}) == [{"x": 1}]
    assert Cells(tmp_path, "code").take("a", {"rate": 2}) is None
    assert Cells(tmp_path, "other").take("a", {"rate": 1}) is None
    assert Cells(tmp_path, "code", fresh=True).take("a", {"rate": 1}) is None
    (tmp_path / "b.cell.json").write_text('{"of"')
    assert kept.take("b", {}) is None


def test_a_refund_that_is_missing_with_a_barrier_fails_whichever_cell_has_it() -> None:
    """The proof is judged; a missing refund or cent anywhere fails the run."""
    good = _proof([LACKING, WAITED], [WAITED, WAITED])
    assert verdict([good]).status == SHOWN
    assert verdict([_proof([WAITED], [WAITED])]).status == INCONCLUSIVE
    assert verdict([_proof([LACKING], [WAITED, LACKING])]).status == FAILED
    think = replace(PROOF, name="think", part="think")
    assert verdict([good, Found(think, [_block("answer", [LACKING])])]).status == FAILED
    short = replace(_block("baseline", [WAITED]), money_adds_up=False)
    assert verdict([good, Found(think, [short])]).status == FAILED


def test_ratios_are_of_blocks_and_shares_of_answered_look_ups() -> None:
    """A block is compared with the same one of the base; what was not answered is no violation."""
    blocks = [_block("baseline", [], it, 100 + it) for it in range(5)]
    blocks += [_block("look-up", [], it, 2 * (100 + it)) for it in range(5)]
    found = ratio(blocks, "look-up", "baseline", lambda block: block.cpu_us["cancel"])
    assert found is not None
    assert (found.low, found.value, found.high) == (2, 2, 2)
    lacking = missing([_block("baseline", [LACKING, WAITED, "00110"])], "baseline")
    assert (lacking.number, lacking.of) == (1, 2)


def test_the_plan_has_what_was_asked_for() -> None:
    """3,000 cancels of each variant show 0 violations, in one region and two."""
    for regions in (1, 2):
        (proof,) = (it for it in plan(FULL) if it.name == f"proof-{regions}")
        assert proof.cancels * proof.blocks == 3000
        thinks = {it.think_ms for it in plan(FULL) if it.regions == regions and it.part == "think"}
        assert max(thinks) == 200
    assert sum(it.expected_s for it in plan(QUICK)) < 600
