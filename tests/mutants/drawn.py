"""Small changes of the code, drawn at random: of a comparison, a condition or a constant."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

#: What stands for each comparison in a mutant.
COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
#: What of a node is no code that runs, or whose place in the text is not known before Python 3.12.
_SKIPPED = {
    "annotation": (ast.AnnAssign, ast.arg),
    "returns": (ast.FunctionDef, ast.AsyncFunctionDef),
    "values": (ast.JoinedStr,),
    "value": (ast.FormattedValue,),
}


class Mutant(NamedTuple):
    """One change of a text.

    Attributes:
        line: where it is.
        before: what stands there.
        after: what the mutant has.
        text: the whole mutant.
    """

    line: int
    before: str
    after: str
    text: str


def mutants(text: str) -> list[Mutant]:
    """All of a module's mutants."""
    found = []
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    whole = text.encode()
    for node in _nodes(ast.parse(text)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = whole[begin:end].decode()
        for changed in _changes(node):
            after = f"({ast.unparse(changed)})"
            mutated = whole[:begin] + after.encode() + whole[end:]
            found.append(Mutant(node.lineno, " ".join(before.split()), after, mutated.decode()))
    return found


def draw(texts: Mapping[str, str], count: int, choose: random.Random) -> list[tuple[str, Mutant]]:
    """So many mutants, each place in the code as likely as any other; by the name of their text."""
    found = [(name, each) for name, text in sorted(texts.items()) for each in mutants(text)]
    return choose.sample(found, min(count, len(found)))


def _nodes(node: ast.AST) -> Iterator[ast.expr]:
    """What may be changed, in what runs."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    for name, value in ast.iter_fields(node):
        if name in _SKIPPED and isinstance(node, _SKIPPED[name]):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _nodes(each)
    if isinstance(node, ast.expr):
        yield node


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[at] = COMPARED[type(operator)]()
            yield changed
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)
