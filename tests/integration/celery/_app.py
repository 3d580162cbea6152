"""The Celery application of the tests; worker processes import it too.

Tasks note what they saw in a file, a line of JSON each, which the test reads. Everything that
differs between tests comes in by the environment.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import celery
from celery import signals
from celery.worker import state
from kombu import Exchange, Queue

import antipode
from antipode import WriteId
from antipode.integrations import celery as antipode_celery
from antipode.integrations.celery import when_visible
from antipode.shim import scope_in
from antipode_shims import embedded

FOLDER = Path(os.environ.get("ANTIPODE_TEST_FOLDER", os.devnull))
BROKER = os.environ.get("ANTIPODE_TEST_BROKER", "memory://")
#: Who instruments Celery, in this order.
INSTRUMENTATIONS = os.environ.get("ANTIPODE_TEST_ORDER", "antipode").split(",")
HOUR = 498_669
DEAD = "dead"

app = celery.Celery("tests", broker=BROKER, backend=os.environ.get("ANTIPODE_TEST_BACKEND"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_default_queue="tests",
    task_queues=[
        Queue(
            "tests",
            Exchange("tests"),
            routing_key="tests",
            queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD},
        )
    ],
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
)


def post(number: int) -> WriteId:
    """A write that some request made."""
    return WriteId("posts", f"p{number}", 1, HOUR)


def own(number: int) -> WriteId:
    """A write that the task of that number makes."""
    return WriteId("mine", f"t{number}", 1, HOUR)


def instrument(names: list[str]) -> None:
    """Instrument Celery by *names*, in their order."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor

    for name in names:
        if name == "antipode":
            antipode_celery.instrument()
        elif name == "opentelemetry":
            CeleryInstrumentor().instrument()
        elif name == "propagator":
            antipode.instrument()


def note(what: str, **more: Any) -> None:
    """Write down what a task sees now."""
    lineage = antipode.current()
    line = {
        "what": what,
        "pid": os.getpid(),
        "thread": threading.get_ident(),
        "scope": scope_in() is not None,
        "writes": sorted(f"{w.datastore}:{w.key}" for w in lineage),
        "incomplete": sorted(map(str, lineage.incomplete)),
        **more,
    }
    with (FOLDER / "notes").open("a") as file:
        file.write(json.dumps(line) + "\n")


def stop_worker(folder: Path) -> None:
    """Tell the worker of that folder to end, once it has no task and has read every result."""
    (folder / "stop").touch()


@signals.worker_ready.connect
def _stop_when_told(sender: Any, **_: Any) -> None:
    """Look for :func:`stop_worker` in the worker's loop, which keeps the loop turning besides.

    A signal may come while the loop has read one part of a result. Celery's pool then waits for
    the other part for ever.
    """

    def look() -> None:
        if (FOLDER / "stop").exists() and not state.reserved_requests:
            state.should_stop = os.EX_OK

    sender.timer.call_repeatedly(0.1, look)


@signals.worker_process_init.connect
def _after_fork(**_: Any) -> None:
    note("forked")


@app.task
def see(number: int) -> int:
    """Note the lineage, then write."""
    note(f"see-{number}")
    antipode.append(own(number))
    return number


@app.task
def fail(number: int) -> None:
    """Write, and fail."""
    note(f"fail-{number}")
    antipode.append(own(number))
    raise LookupError(number)


@app.task
def publish(number: int, *, stop: bool = False) -> None:
    """Write, then publish a task."""
    antipode.append(own(number))
    note(f"publish-{number}")
    if stop:
        antipode.stop()
    see.delay(number + 1)


@app.task(bind=True, max_retries=3)
def retry(self: Any, number: int, *, stop: bool = False) -> None:
    """Write one more in each attempt; succeed in the third."""
    note(f"retry-{number}-{self.request.retries}", id=self.request.id)
    antipode.append(own(number + self.request.retries))
    if stop:
        antipode.stop()
    if self.request.retries < 2:
        raise self.retry(countdown=0)


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def die_once(self: Any, number: int) -> None:
    """Kill the worker's process in the first attempt, after a write."""
    note(f"die-{number}", redelivered=self.request.delivery_info["redelivered"])
    antipode.append(own(number))
    if not self.request.delivery_info["redelivered"]:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
def gather(numbers: list[int], number: int) -> int:
    """The body of a chord."""
    note(f"gather-{number}", numbers=numbers)
    return number


@app.task
def start_chord(numbers: list[int], number: int) -> None:
    """Publish a chord, here where the results' backend is known."""
    celery.chord([see.si(each) for each in numbers])(gather.s(number))


@app.task
def idle() -> None:
    """Neither write nor note."""


@app.task
def look(number: int) -> None:
    """Note the lineage."""
    note(f"look-{number}")


@app.task
def failed(task_id: str) -> None:
    """An error callback that is published, as it takes a task's id alone."""
    note("failed", id=task_id)


@app.task
def failed_by(request: Any, error: BaseException, traceback: Any) -> None:
    """An error callback that is called where the error is seen."""
    note("failed", error=type(error).__name__)
    look.delay(60)


@app.task(bind=True)
def become_header(self: Any) -> Any:
    """Go on as the header of a chord."""
    return self.replace(header())


@app.task
def die(number: int) -> None:
    """Write, and kill the worker's process."""
    antipode.append(own(number))
    os.kill(os.getpid(), signal.SIGKILL)


def header(first: Any = None) -> celery.group:
    """Tasks of which the first one writes; a worker of one process ends it first."""
    return celery.group(first or see.si(1), idle.si(), idle.si())


#: What is published by its name in a worker, and the numbers of the tasks that look at their end.
CANVASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "a task": (lambda: celery.chord(header(), look.si(50)), (50,)),
    "a chain": (lambda: celery.chord(header(), celery.chain(look.si(50), look.si(51))), (50, 51)),
    "a group": (lambda: celery.chord(header(), celery.group(look.si(50), look.si(51))), (50, 51)),
    "a chord": (
        lambda: celery.chord(header(), celery.chord([look.si(50), look.si(51)], look.si(52))),
        (50, 51, 52),
    ),
    "a chain that begins with a group": (
        lambda: celery.chord(
            header(), celery.chain(celery.group(look.si(50), look.si(51)), look.si(52))
        ),
        (50, 51, 52),
    ),
    "group | task | task": (lambda: header() | look.si(50) | look.si(51), (50, 51)),
    "group | group | task": (
        lambda: celery.chain(header(), celery.group(look.si(50), look.si(51)), look.si(52)),
        (50, 51, 52),
    ),
    "replaced by a group": (
        lambda: celery.chain(become_header.si(), look.si(50), look.si(51)),
        (50, 51),
    ),
    "a header of chains and chords": (
        lambda: celery.chord(
            [
                celery.chain(see.si(1), idle.si()),
                celery.chord([idle.si(), idle.si()], idle.si()),
                idle.si(),
            ],
            look.si(50),
        ),
        (50,),
    ),
    "a header replaced by a group": (
        lambda: celery.chord([become_header.si(), idle.si()], look.si(50)),
        (50,),
    ),
}
#: The same for headers whose first task fails.
FAILING: dict[str, Any] = {
    "published": lambda: celery.chord(header(fail.si(1)), look.si(50).on_error(failed.s())),
    "called": lambda: celery.chord(header(fail.si(1)), look.si(50).on_error(failed_by.s())),
    "of a chain": lambda: celery.chord(
        header(celery.chain(fail.si(1), idle.si())), look.si(50).on_error(failed.s())
    ),
    "of a group": lambda: celery.chord(
        header(fail.si(1)), celery.group(look.si(50).on_error(failed.s()), look.si(51))
    ),
}


@app.task
def start(name: str) -> None:
    """Publish what has that name, here where the results' backend is known."""
    (FAILING.get(name) or CANVASES[name][0])().apply_async()


@app.task(bind=True, acks_late=True, acks_on_failure_or_timeout=False)
@when_visible(only="posts", max_attempts=int(os.environ.get("ANTIPODE_TEST_ATTEMPTS", "50")))
def follow(self: Any, number: int) -> None:
    """A task that reads a replica which may be behind."""
    value, _ = _shims["replica"].read("post")
    found = None if value is None else value.decode()
    note(f"follow-{number}", value=found, retries=self.request.retries)


@app.task
def keep(token: str) -> None:
    """The write that others wait for."""
    with antipode.fulfilling(token) as promise:
        _shims["primary"].write("post", b"kept", fulfils=promise)
    note("keep")


_shims: dict[str, embedded.EmbeddedShim] = {}


def use_posts() -> None:
    """Read posts at the replica and write them at the primary, in this process."""
    _shims["replica"] = embedded.shim(
        "posts", FOLDER / "eu.db", on_read="ignore", reads_from="replica"
    )
    _shims["primary"] = embedded.shim("posts", FOLDER / "us.db", reads_from="primary")


if "ANTIPODE_TEST_FOLDER" in os.environ:
    instrument(INSTRUMENTATIONS)
    if (FOLDER / "eu.db").exists():
        use_posts()
