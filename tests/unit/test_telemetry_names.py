"""The names of the telemetry: in the SDK, in the documentation, and in the dashboard's queries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import count, record_write, stored_text
from antipode.telemetry import COUNTERS
from tests.unit._fake_server import LINEAGE, FakeServer
from tests.unit._telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[2] / "docs"
DASHBOARD = DOCS / "assets" / "grafana-dashboard.json"
RULES = DOCS / "assets" / "prometheus-rules.yml"
PAGE = DOCS / "reference" / "telemetry.md"
#: How the Prometheus exporter and the collector spell units; annotations in braces are dropped.
UNITS = {"s": "_seconds", "By": "_bytes"}
SELECTOR = re.compile(r"(\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
GROUPING = re.compile(r"by \(([^)]*)\)")

#: Counts that are of no datastore.
ABOUT_NO_STORE = {
    "baggage_over_limit",
    "blocked_loop",
    "call_repeated",
    "call_unnamed",
    "dry_run_unwritten",
    "grpc_metadata_over_limit",
    "open_branches",
    "scope_out_of_order",
}


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """An SDK that got at least one value of everything."""
    telemetry = Telemetry()
    telemetry.install(monkeypatch)
    for name in COUNTERS:
        count(name, "" if name in ABOUT_NO_STORE else "posts")
    posts = FakeServer()
    antipode.shim.register(posts)
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(LINEAGE, timeout=0.02)
    antipode.check(LINEAGE)
    posts.position = 7
    antipode.barrier(LINEAGE, timeout=5)
    with antipode.scope(LINEAGE) as scope:
        scope.text()
        record_write(WriteId("posts", "log", 8))
    stored_text(Lineage([WriteId("posts", "log", 1)]))
    yield telemetry
    telemetry.close()


def exported(sdk: Telemetry) -> dict[str, dict[str, set[str]]]:
    """The names in Prometheus by its exporter's rules, with labels and the labels' values."""
    names: dict[str, dict[str, set[str]]] = {}
    for metric in sdk.metrics().values():
        name = metric.name.replace(".", "_") + UNITS.get(metric.unit, "")
        assert metric.unit in UNITS or re.fullmatch(r"\{\w+\}", metric.unit)
        labels: dict[str, set[str]] = {"job": set()}
        for point in metric.data.data_points:
            for key, value in point.attributes.items():
                labels.setdefault(key.replace(".", "_"), set()).add(value)
        if hasattr(metric.data, "is_monotonic"):
            names[f"{name}_total"] = labels
        else:
            names |= {f"{name}_{part}": labels for part in ("count", "sum")}
            names[f"{name}_bucket"] = {**labels, "le": set()}
    return names


def queries() -> list[str]:
    """Every query of the dashboard."""
    board: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def test_the_dashboards_queries_ask_for_what_is_exported(sdk: Telemetry) -> None:
    """Every metric, every label and every value in a query is one that the SDK exports."""
    names = exported(sdk)
    assert len(queries()) > 20
    for query in queries():
        selectors = SELECTOR.findall(query)
        assert selectors, query
        for name, matchers in selectors:
            assert name in names, query
            for label, value in MATCHER.findall(matchers):
                assert label in names[name], query
                assert value == "$job" or value in names[name][label], query
            for labels in GROUPING.findall(query):
                assert set(re.split(r",\s*", labels)) <= names[name].keys(), query
        quoted = re.sub(r'"[^"]*"', "", query)
        mentioned = set(re.findall(r"\bantipode_\w+(?=\{)", quoted))
        assert mentioned == {name for name, _ in selectors}


def rules() -> list[dict[str, Any]]:
    """The alerts for Prometheus."""
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_the_alerts_ask_for_what_is_exported(sdk: Telemetry) -> None:
    """Every metric, label and value in an alert is one that the SDK exports."""
    names = exported(sdk)
    assert len(rules()) == len({each["alert"] for each in rules()})
    for rule in rules():
        query, metrics = (
            rule["expr"],
            set(re.findall(r"\bantipode_\w+_\w+\b(?! *[=!])", rule["expr"])),
        )
        asked = metrics & names.keys()
        assert asked, query
        for name, matchers in SELECTOR.findall(query):
            for label, values in MATCHER.findall(matchers):
                assert set(values.split("|")) <= names[name][label], query
        labels = {label for each in asked for label in names[each]}
        for grouped in GROUPING.findall(query):
            assert set(re.split(r",\s*", grouped)) <= labels, query
        texts = "".join(rule["annotations"].values())
        shown = set(re.findall(r"\$labels\.(\w+)", texts))
        assert shown <= set(re.split(r",\s*", GROUPING.findall(query)[0])), texts
        unknown = {each for each in metrics - names.keys() if each not in labels}
        assert not unknown, query


def test_the_dashboard_and_the_alerts_have_all_of_the_checklist(sdk: Telemetry) -> None:
    """Each count that the page names has a panel, which shows it at zero, and an alert."""
    page = (DOCS / "operate" / "production.md").read_text(encoding="utf-8")
    counts = COUNTERS.keys() & set(re.findall(r"`(\w+)`", page))
    assert counts >= {"blocked_loop", "stripped", "unnamed_client", "two_names", "served_stale"}
    names = exported(sdk)
    alerts = [each["expr"] for each in rules()]
    for count_ in counts - {"unknown_store"}:  # Somebody else's datastore, most often.
        name = f"{COUNTERS[count_].name.replace('.', '_')}_total"
        assert name in names
        assert any(name in each for each in alerts), count_
        assert any(name in each and each.endswith("or vector(0)") for each in queries()), count_


def test_the_guides_alerts_are_those_of_the_file() -> None:
    """What the guide shows is what is loaded."""
    guide = (DOCS / "guides" / "telemetry.md").read_text(encoding="utf-8")
    shown = re.findall(r"```promql\n(.*?)```", guide, re.DOTALL)
    loaded = ["".join(each["expr"].split()) for each in rules()]
    assert shown
    assert all("".join(each.split()) in loaded for each in shown)
    assert f"../assets/{RULES.name}" in guide


def test_the_dashboards_legends_name_what_is_grouped_by() -> None:
    """A legend shows labels that its query keeps, and every series of a query has a legend."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            groups = {
                label
                for labels in GROUPING.findall(query)
                for label in re.split(r",\s*", labels)
                if label != "le"
            }
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) == groups, query
            assert all(query.count(pair[0]) == query.count(pair[1]) for pair in ("()", "{}", "[]"))


def test_the_dashboards_variable_asks_for_what_is_exported(sdk: Telemetry) -> None:
    """The list of services comes from a metric that every service has which waits."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    (job,) = [v for v in board["templating"]["list"] if v["name"] == "job"]
    found = re.fullmatch(r"label_values\((\w+), job\)", job["query"]["query"])
    assert found is not None
    assert found.group(1) in exported(sdk)


def test_the_dashboard_has_no_overlapping_panels() -> None:
    """Panels have ids of their own and cover no place twice, within 24 columns."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    places = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) == 23
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_page_lists_what_is_exported(sdk: Telemetry) -> None:
    """Every metric, with its unit and attributes, and nothing else, is in the reference."""
    rows = re.findall(
        r"^\| `(antipode\.[\w.]+)` \| \w+ \| `([^`]+)` \| ([^|]*)\|",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    listed = {name: (unit, set(re.findall(r"`([\w.]+)`", rest))) for name, unit, rest in rows}
    metrics = sdk.metrics()
    assert listed.keys() == metrics.keys()
    for name, metric in metrics.items():
        unit, attributes = listed[name]
        assert unit == metric.unit, name
        found = {key for point in metric.data.data_points for key in point.attributes}
        assert found == attributes, name


def test_the_page_lists_every_count() -> None:
    """Whoever knows a count of ``metrics()`` finds the counter that exports it."""
    page = PAGE.read_text(encoding="utf-8")
    for name, counter in COUNTERS.items():
        (row,) = re.findall(rf"^\| `{re.escape(counter.name)}` .*$", page, re.MULTILINE)
        assert f"`{name}`" in row


def test_the_documented_counts_have_counters() -> None:
    """Each count on the page of metrics is exported by a name of its own."""
    page = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([\w<>]+)`", row)}
    assert {name for name in names if not name.startswith("barrier_")} <= COUNTERS.keys()


def test_reads_that_were_served_stale_are_in_the_dashboard_and_alerted_on(sdk: Telemetry) -> None:
    """Under automatic barriers nothing else says that reads may have been too old."""
    name = "antipode_served_stale_reads_total"
    assert any(name in query for query in queries())
    guide = (DOCS / "guides" / "telemetry.md").read_text(encoding="utf-8")
    alerts = re.findall(r"```promql\n(.*?)```", guide, re.DOTALL)
    assert any(name in alert for alert in alerts)
    for alert in alerts:
        assert set(re.findall(r"\b(antipode_\w+)[{\[]", alert)) <= exported(sdk).keys()
