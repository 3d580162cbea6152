"""Mutants that are drawn at random: each parses, and differs in one comparison or constant."""

from __future__ import annotations

import ast
import random

from tests.mutants.drawn import draw, mutants

TEXT = '''
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    LATE = 1
def f(a: Literal[1], é: bool = False) -> Literal[2]:
    """Of 3."""
    if not a and (
        a
        == 4
    ):
        return f"{5}" + "é" * (a < 6 <= 7)
    return a is None
'''


def test_each_changes_one_place() -> None:
    """Comparisons, conditions and constants; no annotation, and nothing within a text."""
    found = mutants(TEXT)
    assert {(each.before, each.after) for each in found} == {
        ("False", "(True)"),
        ("not a", "(a)"),
        ("a == 4", "(a != 4)"),
        ("4", "(5)"),
        ("not a and ( a == 4 )", "(not a or a == 4)"),
        ("a < 6 <= 7", "(a <= 6 <= 7)"),
        ("a < 6 <= 7", "(a < 6 < 7)"),
        ("6", "(7)"),
        ("7", "(8)"),
        ("a is None", "(a is not None)"),
    }
    for each in found:
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(TEXT))


def test_what_is_drawn_is_drawn_again() -> None:
    """The same seed draws the same, and no place twice."""
    first, again = (draw({"m": TEXT, "n": TEXT}, 12, random.Random(7)) for _ in range(2))
    assert first == again
    assert len({(name, each.text) for name, each in first}) == 12
