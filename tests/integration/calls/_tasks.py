"""Tasks that note what call they run in, of the tests' Celery application; workers import them."""

from __future__ import annotations

import os
import signal
from typing import Any

import celery

from antipode import calls
from tests.integration.celery._app import app, note

#: An application that nobody instruments.
plain = celery.Celery("plain", broker="memory://")


def name() -> str | None:
    """Of the call that is handled; None without one."""
    call = calls.current()
    return None if call is None else call.name


@app.task(bind=True)
def show(self: Any, number: int) -> str | None:
    """Note the call."""
    note(f"show-{number}", name=name(), id=self.request.id)
    return name()


@plain.task
def show_plain() -> str | None:
    """The call's name."""
    return name()


@app.task(bind=True, max_retries=3)
def again(self: Any, number: int) -> None:
    """Fail twice, having published a task each time."""
    note(f"again-{number}", name=name(), id=self.request.id)
    show.delay(number)
    if self.request.retries < 2:
        raise self.retry(countdown=0)


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def killed_once(self: Any, number: int) -> None:
    """Kill the worker's process in the first attempt, after a task was published."""
    note(f"killed-{number}", name=name(), id=self.request.id)
    show.delay(number)
    if not self.request.delivery_info["redelivered"]:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(bind=True)
def replaced(self: Any, number: int) -> Any:
    """Go on as the same task with another argument, until that is 0."""
    note(f"replaced-{number}", name=name(), id=self.request.id)
    return self.replace(replaced.si(number - 1)) if number else number


if "ANTIPODE_TEST_FOLDER" in os.environ:
    calls.instrument_celery(app)
