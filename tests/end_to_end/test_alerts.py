"""The alerts for Prometheus, by its own promtool: each fires when it shall, and not before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from antipode_testing._process import find_executable
from tests.unit.test_telemetry_names import RULES, rules

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None and "CI" not in os.environ, reason="there is no promtool"
)

SHOP = {"job": "shop", "antipode_datastore": "posts"}
#: A count that begins with its first event and stays; one that goes on; one that goes on for a bit.
ONCE, LASTING, BRIEF = "_x5 1x60", "0+1x60", "0+0x5 1+1x4 5x60"
BARRIERS = 'barrier_duration_seconds_count{antipode_operation="barrier", antipode_status='
FAILED, MET = f'{BARRIERS}"barrier_timeout"}}', f'{BARRIERS}"ok"}}'
SCOPES = 'unscoped_operations_total{antipode_operation="read"}'
SIZE = 'truncated_lineages_total{antipode_reason="size"}'

Series = dict[str, str]
#: What fires each alert, and after how many minutes; and what does not.
FIRES: dict[str, tuple[Series, int]] = {
    "AntipodeBarriersFail": ({FAILED: "0+2x60", MET: "0+98x60"}, 8),
    "AntipodeReadsServedStale": ({"served_stale_reads_total": ONCE}, 7),
    "AntipodeClientWithoutName": ({"unnamed_clients_total": ONCE}, 7),
    "AntipodeStoreWithTwoNames": ({"stores_with_two_names_total": ONCE}, 7),
    "AntipodeWritesWithoutPosition": ({"uncovered_writes_total": ONCE}, 7),
    "AntipodeLineagesStripped": ({"stripped_lineages_total": LASTING}, 13),
    "AntipodeScopesLost": ({SCOPES: LASTING}, 33),
    "AntipodeLoopBlocked": ({"blocked_loops_total": ONCE}, 7),
    "AntipodeLineagesTooLong": ({SIZE: LASTING}, 33),
}
SILENT: dict[str, Series] = {
    "AntipodeBarriersFail": {FAILED: "0+1x60", MET: "0+199x60"},
    "AntipodeReadsServedStale": {"served_stale_reads_total": "0x60"},
    "AntipodeClientWithoutName": {"unnamed_clients_total": "0x60"},
    "AntipodeStoreWithTwoNames": {"stores_with_two_names_total": "0x60"},
    "AntipodeWritesWithoutPosition": {"uncovered_writes_total": "0x60"},
    "AntipodeLineagesStripped": {"stripped_lineages_total": ONCE},
    "AntipodeScopesLost": {SCOPES: BRIEF},
    "AntipodeLoopBlocked": {"blocked_loops_total": "7x60"},
    "AntipodeLineagesTooLong": {SIZE: BRIEF},
}


def promtool(*arguments: str) -> str:
    """What the program says, or nothing where all is well."""
    found = find_executable("promtool", install="tools/fetch_debian.sh .stores prometheus")
    ran = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    return f"{ran.stdout}{ran.stderr}" if ran.returncode else ""


def series(name: str, values: str) -> dict[str, str]:
    """One series of the shop, by its name without our prefix and with labels of its own."""
    metric, _, own = name.partition("{")
    labels = ", ".join(f'{label}="{value}"' for label, value in SHOP.items())
    return {"series": f"antipode_{metric}{{{labels}, {own or '}'}", "values": values}


def alert(rule: dict[str, Any]) -> dict[str, Any]:
    """*rule* as it fires for the shop."""
    (by, *_) = re.findall(r"by \(([^)]*)\)", rule["expr"])
    labels = {label: SHOP[label] for label in re.split(r",\s*", by)}

    def filled(text: str) -> str:
        return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)

    said = {name: filled(text) for name, text in rule["annotations"].items()}
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": said}


def case(given: Series, *, alertname: str, after: list[int], fires: list[Any]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [series(name, values) for name, values in given.items()],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alertname, "exp_alerts": fires}
            for minute in after
        ],
    }


def test_promtool_takes_the_file() -> None:
    """As Prometheus does when it loads it."""
    assert promtool("check", "rules", str(RULES)) == ""


def test_alerts_fire_when_they_shall(tmp_path: Path) -> None:
    """Each for what it is about, a first event included where it waits for no more than that."""
    found = {each["alert"]: each for each in rules()}
    assert found.keys() == FIRES.keys() == SILENT.keys()
    fires = [
        case(given, alertname=name, after=[minute], fires=[alert(found[name])])
        for name, (given, minute) in FIRES.items()
    ]
    silent = [
        case(given, alertname=name, after=list(range(12, 60, 6)), fires=[])
        for name, given in SILENT.items()
    ]
    about = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [*fires, *silent]}
    file = tmp_path / "alerts.yml"
    file.write_text(json.dumps(about), encoding="utf-8")
    assert promtool("test", "rules", str(file)) == ""
