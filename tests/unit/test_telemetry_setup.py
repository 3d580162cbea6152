"""Telemetry in fresh processes: without an SDK, with one set up before, after, or in vain."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

ROOT = Path(__file__).resolve().parents[2]

SDK = """
from tests.unit._telemetry import Telemetry
from opentelemetry import metrics, trace
sdk = Telemetry()
def set_up():
    trace.set_tracer_provider(sdk.tracers)
    metrics.set_meter_provider(sdk.meters)
def spans():
    return [span.name for span in sdk.spans if span.name != "antipode.wait"]
"""

USE = """
import antipode
from antipode.shim import count
from antipode_testing import wait_until
from tests.unit._fake_server import LINEAGE, FakeServer
posts = FakeServer(pinned=True)
posts.position = 7
antipode.shim.register(posts)
def use():
    count("uncovered_write", "posts")
    with antipode.scope(LINEAGE) as scope:
        scope.text()
        assert antipode.barrier(timeout=5)
"""


def run(program: str, **environment: str) -> str:
    """What a program prints in a fresh interpreter in which warnings are errors."""
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def guide(first: str) -> str:
    """The example of the guide that begins with this import."""
    page = (ROOT / "docs" / "guides" / "telemetry.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"```python\n({re.escape(first)}.*?)```", page, re.DOTALL)
    return str(found)


def test_an_sdk_set_up_before_the_import() -> None:
    """The first barrier is a span, and counts and histograms are exported."""
    said = run(
        f"{SDK}\nset_up()\n{USE}\nuse()\n"
        "print(spans(), sdk.value('antipode.uncovered_writes'),"
        " sdk.value('antipode.barrier.duration'), sdk.value('antipode.lineage.size'))"
    )
    assert said == "['antipode.barrier'] 1 1 1\n"


def test_an_sdk_set_up_after_the_import() -> None:
    """Nothing is asked of OpenTelemetry before the library is used."""
    said = run(
        f"{USE}\n{SDK}\nset_up()\nuse()\n"
        "print(spans(), sdk.value('antipode.uncovered_writes'),"
        " sdk.value('antipode.barrier.duration'), sdk.value('antipode.lineage.size'))"
    )
    assert said == "['antipode.barrier'] 1 1 1\n"


def test_an_sdk_set_up_after_first_use() -> None:
    """What was counted before is in the counters; barriers are spans a tenth of a second later."""
    said = run(
        f"{USE}\nuse()\n{SDK}\nset_up()\n"
        "print(sdk.value('antipode.uncovered_writes'))\n"
        "wait_until(lambda: use() or spans(), what='a span', timeout_s=5)\n"
        "print(spans(), sdk.value('antipode.barrier.duration') > 0)"
    )
    assert said == "1\n['antipode.barrier'] True\n"


def test_without_an_sdk_nothing_is_made() -> None:
    """No SDK is imported, no thread is started, and no instrument is asked for once all exist."""
    said = run(
        f"{USE}\nimport sys, threading\nfrom antipode._telemetry import telemetry as _telemetry\n"
        "use()\nasked = []\n_telemetry.instruments = lambda: asked.append(1)\n"
        "use()\nuse()\n"
        "wait_until(lambda: threading.active_count() == 1, what='watchers to end', timeout_s=5)\n"
        "print(asked, any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    )
    assert said == "[] False\n"


def test_a_provider_that_does_not_load() -> None:
    """A provider that the environment names in vain costs the telemetry, and nothing else."""
    in_vain = {"OTEL_PYTHON_TRACER_PROVIDER": "no-such", "OTEL_PYTHON_METER_PROVIDER": "no-such"}
    assert run(f"{USE}\nuse()\nuse()\nprint('used')", **in_vain) == "used\n"


def test_the_guides_sdk() -> None:
    """What the guide sets up prints the barrier's span and its duration when the program ends."""
    said = run(f"{guide('from opentelemetry import metrics')}\n{USE}\nuse()")
    for name in ("antipode.barrier", "antipode.barrier.duration", "antipode.uncovered_writes"):
        assert f'"name": "{name}"' in said


def test_the_guides_buckets() -> None:
    """The guide's view gives the durations its buckets, whatever the instrument advises."""
    names: dict[str, Any] = {}
    exec(guide("from opentelemetry.sdk.metrics.view"), names)  # noqa: S102 - of our own page
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], views=names["views"], shutdown_on_exit=False)
    meters.get_meter("antipode").create_histogram("antipode.barrier.duration", "s").record(0.02)
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert metric.data.data_points[0].explicit_bounds[:2] == (0.001, 0.005)
    meters.shutdown()
