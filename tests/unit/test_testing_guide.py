"""The guide to testing does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import antipode_testing
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing import plugin

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")


def test_the_example_passes(pytester: pytest.Pytester) -> None:
    """A user's test file, as the guide prints it, passes with the plugin's fixture."""
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    pytester.makepyfile(example)
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_every_store_has_its_fixture_in_the_table() -> None:
    """Whoever looks for the servers of a store finds the fixture that starts them."""
    source = Path(plugin.__file__).read_text(encoding="utf-8")
    fixtures = re.findall(r"^def (antipode_\w+)\(request", source, flags=re.MULTILINE)
    assert len(fixtures) > 10
    assert [name for name in fixtures if f"| `{name}` |" not in GUIDE] == []


def test_every_fixture_and_fault_exists() -> None:
    """The tables name real fixtures and real methods."""
    for name in re.findall(r"^\| `(antipode_\w+)` ", GUIDE, flags=re.MULTILINE):
        assert hasattr(plugin, name)
    for section in re.split(r"^#+ ", GUIDE, flags=re.MULTILINE):
        named = ["Topology", *re.findall(r"`(\w+Topology)\b", section)]
        owners = [getattr(antipode_testing, name, EmbeddedTopology) for name in named]
        for name in re.findall(
            r"`(\w+)\([^`]*\)`", "".join(re.findall(r"^\| .*?\|", section, re.MULTILINE))
        ):
            assert any(callable(getattr(owner, name, None)) for owner in owners), name
    for name in ("suspend_replica", "force_full_resync", "resync_sibling"):
        assert callable(getattr(antipode_testing.RedisTopology, name))
    for name in ("kill_broker", "restart_broker"):
        assert callable(getattr(antipode_testing.RabbitMQTopology, name))
