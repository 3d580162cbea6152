"""Records of several reads in a row, in a report."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING

import pytest

from antipode_cli.report import RecordsError, load, render, report, summary
from tests.unit._dry_run_files import SAVE, SHOW, Recorder, entry

if TYPE_CHECKING:
    from pathlib import Path


def test_reads_in_a_row_count_as_many(tmp_path: Path) -> None:
    """One record may be of many reads: all of them are unguarded, late and waited for."""
    one = Recorder("aaaaaaaaaaaa")
    one.write(0, SAVE, entry(1))
    one.evidence(2, one.read(1, SHOW, entry(1), reads=98), 0.1, stale=True)
    one.evidence(2, one.read(1, SHOW, entry(1)), 0.3, stale=False)
    one.read(1, SHOW, entry(1), reads=10**12)
    one.read(1, SHOW, entry(1), reads=5, verdict="guarded")
    whole = report(load([one.save(tmp_path)]))
    (found,) = whole.findings
    cost = found.cost
    assert (cost.median_s, cost.p99_s, cost.known, cost.reads) == (0.1, 0.3, 99, 10**12 + 99)
    assert found.confirmed == 98
    counted = json.loads(render(whole, "json"))["records"]
    assert (counted["reads_unguarded"], counted["reads_guarded"]) == (10**12 + 99, 5)
    page = unescape(render(whole, "html"))
    assert "98 times in a row" in page
    assert "From 99 unguarded reads: median 100 ms" in page
    assert "1000000000104 reads of replicas" in summary(whole)


@pytest.mark.parametrize("reads", [0, -1, 1.5, "2", None])
def test_a_record_of_no_number_of_reads_is_refused(tmp_path: Path, reads: object) -> None:
    """A file that anybody wrote is read as the specification says, or not at all."""
    one = Recorder("aaaaaaaaaaaa")
    one.read(1, SHOW, entry(1), reads=reads)
    with pytest.raises(RecordsError, match="no record of a dry run"):
        load([one.save(tmp_path)])
