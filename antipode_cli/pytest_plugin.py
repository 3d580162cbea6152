"""The pytest plugin: `--antipode-dry-run` and its further options report missing barriers.

Every run of pytest where Antipode is installed loads this module: nothing of `antipode` is imported
before one of the options is given.
"""

from __future__ import annotations

import pytest

from ._pytest_options import BASELINE, DRY_RUN, FAIL_ON, REPORT, REQUIRE


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, in a group of their own."""
    group = parser.getgroup("antipode", "missing barriers (antipode)")
    group.addoption(
        DRY_RUN,
        action="store_true",
        help="run the tests in a dry run: no barrier waits, and missing ones are reported",
    )
    group.addoption(
        FAIL_ON,
        choices=("unguarded", "confirmed", "lint", "none"),
        default="none",
        help="fail the run on new findings: all missing barriers, those with a confirmed stale "
        "read, or lints as well; default: none",
    )
    group.addoption(
        BASELINE, metavar="FILE", help="ids of known findings, as `antipode report` writes them"
    )
    group.addoption(
        REQUIRE,
        metavar="DATASTORES",
        help="fail the run where nothing of one of these datastores was judged; names separated by "
        "commas",
    )
    group.addoption(
        REPORT,
        metavar="DIR",
        help="write the report there in all formats, a baseline, and the records",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the dry run where it is asked for.

    Args:
        config: of this run.

    Raises:
        pytest.UsageError: an option without `--antipode-dry-run`, which would check nothing,
            silently; or a file that cannot be used.
    """
    if config.getoption(DRY_RUN):
        from ._dry_run_session import begin_session

        begin_session(config, config.invocation_params.dir)
        return
    for name, unset in ((FAIL_ON, "none"), (BASELINE, None), (REPORT, None), (REQUIRE, None)):
        if config.getoption(name) != unset:
            raise pytest.UsageError(f"{name} needs {DRY_RUN}")
