"""What a look raises that a later look may not: in a file of its own, for floors and shims."""

from __future__ import annotations


class Unreachable(Exception):  # noqa: N818 - the name is fixed by the specification
    """A look failed in a way that a later look may not: refused, reset, timed out, loading."""
