"""The dashboard over a real Prometheus that scrapes a real service, and against Grafana's types."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from antipode_testing import wait_until
from tests.end_to_end._prometheus import (
    DASHBOARD,
    JOB,
    Prometheus,
    panels,
    prometheus,
    queries,
    replaced,
)
from tests.unit.test_telemetry_names import rules

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None and "CI" not in os.environ, reason="there is no Prometheus"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Prometheus]:
    with prometheus() as running:
        yield running


@needs_prometheus
def test_every_query_has_an_answer(server: Prometheus) -> None:
    """Prometheus answers each query of each panel with numbers of what the service exported."""
    missing = {(each.title, each.text) for each in queries()}
    assert len(missing) > 25

    def answered() -> bool:
        missing.difference_update([each for each in missing if server.values(each[1])])
        return not missing

    wait_until(answered, what="every query to have an answer", timeout_s=120)


@needs_prometheus
def test_what_is_to_stay_at_zero_stands_there_from_the_start(server: Prometheus) -> None:
    """Of a service that counted nothing yet, each line of that row is at zero, not absent."""
    titles = [panel["title"] for panel in panels()]
    row = panels()[titles.index("To stay at zero") + 1 :]
    asked = [replaced(target["expr"], job="new") for panel in row for target in panel["targets"]]
    assert len(asked) == 12
    assert [server.values(query) for query in asked] == [[0.0]] * len(asked)


@needs_prometheus
def test_the_variable_lists_the_service(server: Prometheus) -> None:
    """The choice of services is filled by the label that Prometheus gives to what it scrapes."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    (job,) = [each for each in board["templating"]["list"] if each["name"] == "job"]
    (metric,) = re.findall(r"label_values\((\w+), job\)", job["query"]["query"])
    wait_until(
        lambda: server.ask("label/job/values", **{"match[]": metric}) == [JOB],
        what="the service to be listed",
        timeout_s=60,
    )


@needs_prometheus
def test_the_alerts_are_queries(server: Prometheus) -> None:
    """Prometheus takes each alert of the file as it is."""
    for rule in rules():
        assert isinstance(server.ask("query", query=rule["expr"])["result"], list)


def test_grafanas_types_know_all_of_it() -> None:
    """Read and written again by Grafana's own generated types, the dashboard loses nothing."""
    register_default_plugins()
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    assert lost(board, again) == []


def lost(here: Any, there: Any, at: str = "") -> list[str]:
    """What *here* says that *there* does not."""
    if isinstance(here, dict) and isinstance(there, dict):
        pairs = [(here[key], there.get(key), f"{at}.{key}") for key in here]
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        pairs = [
            (*each, f"{at}[{number}]") for number, each in enumerate(zip(here, there, strict=True))
        ]
    else:
        return [] if here == there else [f"{at}: {here!r} became {there!r}"]
    return [each for pair in pairs for each in lost(*pair)]
