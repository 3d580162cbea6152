"""The services in C++ and Java, built."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks import _maven
from benchmarks._machine import ROOT
from benchmarks.post_notification._options import BenchmarkError

SERVICES = Path(__file__).with_name("services")
JAVA = SERVICES / "java"
DESCRIPTORS = "social_graph.descriptors"


def build(preset: str) -> Path:
    """Build what is not built yet; the folder that has a folder of programs for each variant.

    Args:
        preset: of the C++ library: `dev` is what `make cpp` has built, `package` what users build.

    Raises:
        BenchmarkError: it does not build.
    """
    try:
        also = [SERVICES / "social_graph.proto"]
        for other in ("", "opentelemetry"):
            _maven.build(JAVA, library=False, other=other, also=also)
        _maven.build(JAVA, library=True, also=also)
    except _maven.MavenError as error:
        raise BenchmarkError(str(error)) from error
    command = [str(ROOT / "tools" / "build_social_graph.sh"), preset]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    if built.returncode:
        said = (built.stdout + built.stderr).strip()
        raise BenchmarkError(f"the services do not build:\n{said[-2000:]}")
    return ROOT / "build" / "social_graph" / preset
