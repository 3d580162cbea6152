"""Services of the tests as processes of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: For a stock service under the agent: the packages of this environment have our entry point.
STOCK = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "antipode"}


def environment(settings: dict[str, str]) -> dict[str, str]:
    """This process's own, of OpenTelemetry's and our variables *settings* alone."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "ANTIPODE_"))}
    kept |= {f"OTEL_{kind}_EXPORTER": "none" for kind in ("TRACES", "METRICS", "LOGS")}
    paths = [str(ROOT), str(ROOT / "shims")]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)} | settings


def under_agent(program: list[str]) -> list[str]:
    """*program* as ``opentelemetry-instrument`` starts it."""
    found = shutil.which("opentelemetry-instrument", path=str(Path(sys.executable).parent))
    assert found is not None
    return [found, *program]


@contextlib.contextmanager
def process(module: str, *, agent: bool, **settings: str) -> Iterator[str]:
    """The application of *module*, served by uvicorn in a process of its own; yields its URL."""
    program = [sys.executable, "-m", "uvicorn", f"tests.integration.opentelemetry.{module}:app"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, number = listening.getsockname()[1], listening.fileno()
        program += ["--fd", str(number), "--log-level", "warning"]
        running = subprocess.Popen(
            under_agent(program) if agent else program,
            env=environment(settings),
            cwd=ROOT,
            pass_fds=[number],
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(20)
