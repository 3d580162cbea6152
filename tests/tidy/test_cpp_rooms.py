"""Components of the C++ library see the public headers of the core, and their own room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "cpp" / "src"
COMPONENTS = ("grpc", "mongodb", "mysql", "rabbitmq", "redis")


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_includes_nothing_private_of_another(component: str) -> None:
    """A shim outside of this tree could be written as those within."""
    files = [path for suffix in ("*.h", "*.cc") for path in (SOURCES / component).glob(suffix)]
    assert files
    includes = {
        room
        for path in files
        for room in re.findall(r'#include "(\w+)/', path.read_text(encoding="utf-8"))
    }
    assert includes <= {"antipode", component}
