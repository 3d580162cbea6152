"""Check recorded histories for cross-service causal consistency (paper, section 4.2).

``antipode check`` is its command line. `docs/spec/history.md` defines histories and verdicts.
"""

from __future__ import annotations

from ._checker import (
    BUDGET_STEPS,
    Edge,
    ExhaustedError,
    Explanation,
    History,
    HistoryError,
    Operation,
    Progress,
    Reading,
    Result,
    Rule,
    Verdict,
    check,
    load,
    save,
)

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


def __dir__() -> list[str]:
    return __all__
