"""The Java services, built."""

from __future__ import annotations

from pathlib import Path

from benchmarks import _maven

from ._variants import TrainTicketError

SERVICES = Path(__file__).resolve().parent / "java"


def build(*, library: bool) -> None:
    """Build the services, with the library or without, unless they are built of what is there.

    Raises:
        TrainTicketError: there is no Maven, or it failed.
    """
    try:
        _maven.build(SERVICES, library=library)
    except _maven.MavenError as error:
        raise TrainTicketError(str(error)) from error


def class_path(module: str, *, library: bool) -> str:
    """The class path of a service that is built."""
    return _maven.class_path(SERVICES / module, "antipode" if library else "baseline")


def agent() -> Path:
    """OpenTelemetry's Java agent.

    Raises:
        TrainTicketError: it cannot be fetched.
    """
    try:
        return _maven.agent()
    except _maven.MavenError as error:
        raise TrainTicketError(str(error)) from error
