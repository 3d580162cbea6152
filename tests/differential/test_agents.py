"""Languages answer random sequences as Python does; and what differs is found and made short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance._agents import BUILT, LACKING, command
from tests.differential._answers import difference
from tests.differential._pair import Difference, Pair
from tests.differential._run import described, run
from tests.differential._sequences import FAMILIES, families, sequence
from tests.differential._shrink import shrink

if TYPE_CHECKING:
    from tests.differential._sequences import Request

SEQUENCES, SECONDS = 400, 25.0


@pytest.mark.slow
@pytest.mark.parametrize("language", BUILT)
def test_a_language_answers_as_python_does(language: str) -> None:
    """Some hundred sequences are answered alike; `make nightly` has 100,000 others."""
    names = families(LACKING.get(language, ()))
    with Pair(command("python"), command(language)) as pair:
        done = run(pair, names, range(SEQUENCES), seconds=SECONDS, most=3)
    told = [described(found, "python", language) for found in done.differences.values()]
    assert not told, "\n".join(told)


def test_a_seed_has_one_sequence() -> None:
    """What is found once is found again by its seed, and is JSON."""
    for seed in range(200):
        made = sequence(seed, list(FAMILIES))
        assert json.loads(json.dumps(made)) == made == sequence(seed, list(FAMILIES))


def test_what_does_not_matter_is_left_out() -> None:
    """A difference is as short as it can be: here what an item makes different."""

    def differs(made: list[Request]) -> Difference | None:
        for nth, request in enumerate(made):
            if request["op"] == "parse" and "~x" in request["text"]:
                return Difference(made, nth, "", {"value": 1}, {"value": 2})
        return None

    made: list[Request] = [{"op": "parse", "text": text} for text in ("1", "1~a~x~b", "1~c")]
    found = differs(made)
    assert found is not None
    assert shrink(found, differs).sequence == [{"op": "parse", "text": "1~x"}]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"value": "1"}, {"value": "1~x"}),
        ({"value": "1"}, {"code": "lineage_item"}),
        ({"code": "lineage_item"}, {"code": "lineage_header"}),
        ({"value": ["1", 2]}, {"value": ["1", 3]}),
        ({"value": ["1"]}, {"broken": "it has ended"}),
    ],
)
def test_answers_that_differ(left: Any, right: Any) -> None:
    """A value, a code and an agent that ends are told apart."""
    request = {"op": "algebra", "steps": []}
    assert difference(request, left, right) is not None
    assert difference(request, left, left) is None
