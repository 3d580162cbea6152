"""A checker of cross-service causal consistency. Never imported by the core."""

from __future__ import annotations

from ._check import Result, check
from ._decide import Verdict
from ._evidence import Edge, Rule
from ._explain import Explanation
from ._files import load, save
from ._history import History, HistoryError, Operation, Progress
from ._limits import BUDGET_STEPS, ExhaustedError
from ._order import Reading

__all__ = [
    "BUDGET_STEPS",
    "Edge",
    "ExhaustedError",
    "Explanation",
    "History",
    "HistoryError",
    "Operation",
    "Progress",
    "Reading",
    "Result",
    "Rule",
    "Verdict",
    "check",
    "load",
    "save",
]
