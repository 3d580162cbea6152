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


@contextlib.contextmanager
def process(module: str, *, agent: bool, **settings: str) -> Iterator[str]:
    """The service of *module* in a process of its own, by OpenTelemetry's agent or without.

    Only the *settings* given here are OpenTelemetry's; yields its URL.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "ANTIPODE_"))}
    environment |= {f"OTEL_{kind}_EXPORTER": "none" for kind in ("TRACES", "METRICS", "LOGS")}
    paths = [str(ROOT), str(ROOT / "shims")]
    environment |= {"PYTHONPATH": os.pathsep.join(paths)} | settings
    program = [sys.executable, "-m", "uvicorn", f"tests.integration.{module}:app"]
    if agent:
        found = shutil.which("opentelemetry-instrument", path=str(Path(sys.executable).parent))
        assert found is not None
        program = [found, *program]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, number = listening.getsockname()[1], listening.fileno()
        program += ["--fd", str(number), "--log-level", "warning"]
        running = subprocess.Popen(program, env=environment, cwd=ROOT, pass_fds=[number])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(20)
