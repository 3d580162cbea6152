"""Dry runs of programs in other languages, by their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests._lines import records_in

if TYPE_CHECKING:
    from pathlib import Path


def dry_run_into(folder: Path) -> dict[str, str]:
    """The environment of a process in a dry run that writes its records into *folder*."""
    return {"ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": str(folder)}


def lints(folder: Path) -> list[tuple[str, str]]:
    """The lints in *folder*, each with its datastore."""
    return [
        (each["lint"], each["datastore"]) for each in records_in(folder) if each["kind"] == "lint"
    ]
