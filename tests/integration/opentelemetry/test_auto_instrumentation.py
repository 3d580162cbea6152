"""`opentelemetry-instrument` around a service, with propagators in every order."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage
from antipode_testing import wait_until
from tests.integration._ingress import ADDED, CAME, ask, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("opentelemetry.distro")
pytest.importorskip("opentelemetry.instrumentation.fastapi")
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(sys.executable).with_name("opentelemetry-instrument")


@contextmanager
def service(module: str = "_auto_app", **settings: str) -> Iterator[int]:
    """The application of *module* under ``opentelemetry-instrument uvicorn``; the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        command = [
            PROGRAM,
            "uvicorn",
            f"tests.integration.opentelemetry.{module}:app",
            "--log-level",
            "error",
        ]
        quiet = {f"OTEL_{what}_EXPORTER": "none" for what in ("TRACES", "METRICS", "LOGS")}
        path = os.pathsep.join((str(PROGRAM.parent), os.environ["PATH"]))
        with subprocess.Popen(
            [*command, "--fd", str(listener.fileno())],
            cwd=ROOT,
            env={**os.environ, **quiet, **settings, "PATH": path},
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield port
            finally:
                process.terminate()
                assert process.stderr is not None
                errors = process.stderr.read()
    assert "Traceback" not in errors, errors


@pytest.mark.parametrize(
    "propagators",
    [
        "tracecontext,baggage",
        "baggage,tracecontext",
        "tracecontext,antipode",
        "antipode,tracecontext",
        "baggage,antipode",
    ],
)
@pytest.mark.parametrize("sampler", ["always_on", "always_off"])
def test_a_service_takes_part(propagators: str, sampler: str) -> None:
    """The answer holds what was added; what is sent on holds that and what came, alive."""
    with service(OTEL_PROPAGATORS=propagators, OTEL_TRACES_SAMPLER=sampler) as port:
        wait_until(lambda: answers(port), what="the service to answer", timeout_s=60)
        answer = ask(port, "/", sent(CAME, more="tenant=a"))
    assert answer.lineage == Lineage([ADDED])
    members = dict(m.split("=") for m in json.loads(answer.body)["baggage"].split(","))
    assert antipode.deserialize(members["antipode"]) == Lineage([CAME, ADDED])
    assert members["tenant"] == "a"


@pytest.mark.slow
@pytest.mark.parametrize(("disabled", "said"), [("", Lineage([ADDED])), ("antipode", None)])
def test_a_service_without_a_line_takes_part(disabled: str, said: Lineage | None) -> None:
    """``opentelemetry-instrument`` covers it, unless our entry point is switched off there."""
    with service("_bare_app", OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=disabled) as port:
        wait_until(lambda: answers(port), what="the service to answer", timeout_s=60)
        answer = ask(port, "/", sent(CAME))
    assert answer.lineage == said


def answers(port: int) -> bool:
    """Whether the service has started; the connection waits until then."""
    try:
        return ask(port).status == 200
    except OSError:
        return False
