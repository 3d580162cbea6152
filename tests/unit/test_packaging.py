"""What an installed Antipode is: light to import, typed, and found by its entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution, entry_points
from importlib.resources import files

import pytest

DISTRIBUTION = "antipode-xcy"
# Clients, test tools and the heavy parts of the standard library: not for someone who only imports.
FOREIGN = {
    "aio_pika",
    "antipode_cli",
    "antipode_shims",
    "antipode_testing",
    "asyncio",
    "hypothesis",
    "matplotlib",
    "pika",
    "pytest",
    "redis",
    "rich",
    "sqlite3",
    "wrapt",
}
# What an import may add beyond the OpenTelemetry API: our modules, a little standard library.
OWN_MODULES_AT_MOST = 45
STANDARD_MODULES_AT_MOST = 25


def modules_after(statement: str) -> set[str]:
    """The names in `sys.modules` of a fresh interpreter after a statement.

    With -S and an explicit path: what site hooks and .pth files import is not ours.
    """
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    answer = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return set(json.loads(answer.stdout))


OPENTELEMETRY = "import opentelemetry.context, opentelemetry.baggage"


def test_import_takes_nothing_foreign() -> None:
    """Importing `antipode` imports no client, no OpenTelemetry SDK, no shim and no asyncio."""
    loaded = modules_after("import antipode") - modules_after(OPENTELEMETRY)
    assert not {name for name in loaded if name.split(".")[0] in FOREIGN}
    assert not {name for name in loaded if name.startswith("opentelemetry.sdk")}


def test_import_is_cheap() -> None:
    """Importing `antipode` adds few modules to what the OpenTelemetry API imports anyway."""
    added = modules_after(f"{OPENTELEMETRY}\nimport antipode") - modules_after(OPENTELEMETRY)
    own = {name for name in added if name.split(".")[0] == "antipode"}
    standard = {name for name in added if name.split(".")[0] in sys.stdlib_module_names}
    assert len(own) <= OWN_MODULES_AT_MOST, sorted(own)
    assert len(standard) <= STANDARD_MODULES_AT_MOST, sorted(standard)
    assert added == own | standard


def test_core_needs_only_the_opentelemetry_api() -> None:
    """Without an extra, the distribution depends on `opentelemetry-api` alone."""
    needed = [one for one in distribution(DISTRIBUTION).requires or [] if "extra ==" not in one]
    assert len(needed) == 1
    assert needed[0].startswith("opentelemetry-api>=")


@pytest.mark.parametrize(
    "package", ["antipode", "antipode_cli", "antipode_shims", "antipode_testing"]
)
def test_packages_ship_their_types(package: str) -> None:
    """Type checkers see the annotations of an installed package."""
    assert files(package).joinpath("py.typed").is_file()


def test_shims_are_found_by_entry_point() -> None:
    """Each datastore is announced under its own name, and imports without its server."""
    found = {point.name: point for point in entry_points(group="antipode_shims")}
    assert found
    for name, point in found.items():
        assert point.value == f"antipode_shims.{name}"
        assert import_module(point.value).__name__ == point.value


def test_propagator_is_found_by_entry_point() -> None:
    """`OTEL_PROPAGATORS=antipode` names a propagator that can be made without arguments."""
    (point,) = entry_points(group="opentelemetry_propagator", name="antipode")
    propagator = point.load()()
    assert "baggage" in propagator.fields
