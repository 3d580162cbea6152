"""Exit statuses."""

from __future__ import annotations

from antipode import AntipodeError

CLEAN = 0
FINDINGS = 1
USAGE = 2
#: A check that neither holds nor fails.
UNKNOWN = 3
#: 128 and the number of the signal, as a shell has it.
INTERRUPTED = 130
PIPE_CLOSED = 141


class UsageError(AntipodeError):
    """The program was called in a way that cannot work, or on what it cannot read."""

    code = "usage"
