"""The memory limit of a check, where the system does not say what is in use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from antipode import ConfigurationError
from antipode._checker import _limits


def test_without_proc_the_most_that_it_had_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS: a process of Python has had some MiB, and not a TiB."""
    monkeypatch.setattr(_limits, "_STATM", Path("/no/such/file"))
    assert 1 < _limits.resident_mib() < 1 << 20


def test_without_anything_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: a limit that cannot be kept is an error, and without one a check runs."""
    monkeypatch.setattr(_limits, "_STATM", Path("/no/such/file"))
    monkeypatch.setitem(sys.modules, "resource", None)
    _limits.Meter().passed("operations", 1, 2)
    with pytest.raises(ConfigurationError, match="give no memory limit"):
        _limits.Meter(memory_limit_mib=1).passed("operations", 1, 2)
