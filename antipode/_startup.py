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
    """Begin and end dry runs and histories, where their settings are others than before."""
    if held is not None and new is not None and _of_observers(held) == _of_observers(new):
        return
    for ended in (observers.dry_run, observers.history):
        if ended is not None:
            ended.close()
    observers.noting = observers.dry_run = observers.history = None
    if new is None or switch.disabled:
        return
    if new.mode == "dry-run":
        from ._dry_run.dry_run import DryRun

        observers.noting = observers.dry_run = DryRun(new.dry_run_dir, new.region)
    if new.history_dir is not None:
        from ._history.recorder import HistoryRecorder

        observers.noting = observers.history = HistoryRecorder(new.history_dir, observers.dry_run)


def _of_observers(settings: Config) -> tuple[str | None, ...]:
    return settings.mode, settings.dry_run_dir, settings.region, settings.history_dir


observers.telemetry = telemetry
config.on_change(_follow)
