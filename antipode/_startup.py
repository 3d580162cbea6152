"""Who observes this process, and when: imported before anything is.

The rooms below ask the slots of :mod:`antipode._runtime.observers`, and know nobody who fills them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._runtime import config, observers, switch
from ._telemetry import telemetry

if TYPE_CHECKING:
    from ._runtime.config import Config


def _follow(held: Config | None, new: Config | None) -> None:
    """Begin and end dry runs, where the settings that one has are others than before."""
    if held is not None and new is not None and _of_dry_run(held) == _of_dry_run(new):
        return
    ended, observers.dry_run = observers.dry_run, None
    if ended is not None:
        ended.close()
    if new is not None and new.mode == "dry-run" and not switch.disabled:
        from ._dry_run.dry_run import DryRun

        observers.dry_run = DryRun(new.dry_run_dir, new.region)


def _of_dry_run(settings: Config) -> tuple[str, str | None, str | None]:
    return settings.mode, settings.dry_run_dir, settings.region


observers.telemetry = telemetry
config.on_change(_follow)
