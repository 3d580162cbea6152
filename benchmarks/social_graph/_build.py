"""The services in C++, built."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.post_notification._options import BenchmarkError

_ROOT = Path(__file__).resolve().parents[2]
DESCRIPTORS = "social_graph.descriptors"


def build(preset: str) -> Path:
    """Build what is not built yet; the folder that has a folder of programs for each variant.

    Args:
        preset: of the C++ library: `dev` is what `make cpp` has built, `package` what users build.

    Raises:
        BenchmarkError: it does not build.
    """
    command = [str(_ROOT / "tools" / "build_social_graph.sh"), preset]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    if built.returncode:
        said = (built.stdout + built.stderr).strip()
        raise BenchmarkError(f"the services do not build:\n{said[-2000:]}")
    return _ROOT / "build" / "social_graph" / preset
