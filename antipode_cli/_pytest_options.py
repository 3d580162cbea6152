"""The names of the options of a dry run under pytest."""

from __future__ import annotations

DRY_RUN = "--antipode-dry-run"
FAIL_ON = "--antipode-fail-on"
BASELINE = "--antipode-baseline"
REPORT = "--antipode-report"
REQUIRE = "--antipode-require"
