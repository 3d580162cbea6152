"""What a benchmark of consistency proves: one judge, which knows nothing of what was measured.

Whoever measures tells of each trial what became of it. The judge says whether what was to be shown
is shown, is refuted, or whether nobody can tell: a run that could not fail proves nothing.
"""

from ._blocks import LEAST_BLOCKS, differ, over_blocks, rotated, shares
from ._load import busy
from ._verdict import FAILED, INCONCLUSIVE, SHOWN, Trial, Verdict, judge

__all__ = [
    "FAILED",
    "INCONCLUSIVE",
    "LEAST_BLOCKS",
    "SHOWN",
    "Trial",
    "Verdict",
    "busy",
    "differ",
    "judge",
    "over_blocks",
    "rotated",
    "shares",
]
