"""A payment service that is killed after so many of its steps, and starts again at once.

A parent listens and forks the process that serves: whoever calls meanwhile waits for the next one.
A step is a statement before or after it is sent, a commit before it is sent, a connection that goes
back to its pool, and the beginning of a response.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import socket
import sys
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import pymongo
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI, Header
from pydantic import BaseModel
from pymongo import monitoring
from sqlalchemy.orm import Session

from antipode import calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Where replies are that are stored after the commit.
KEPT = "kept_replies"
_INSERT = sa.text("INSERT INTO payments (id, order_id) VALUES (:id, :order_id)")
_KEEP = sa.text(f"INSERT INTO {KEPT} (id, reply) VALUES (:id, :reply)")  # noqa: S608 - our own name
_FIND = sa.text(f"SELECT reply FROM {KEPT} WHERE id = :id")  # noqa: S608 - as above


class Payment(BaseModel):
    """What is asked for."""

    order_id: str


class Killer:
    """Kills this process after so many steps."""

    def __init__(self) -> None:
        """Do not count yet."""
        self._left: Iterator[int] = itertools.repeat(1)

    def begin(self, steps: int) -> None:
        """The last of so many *steps* is the last one of this process."""
        self._left = iter(range(steps - 1, -1, -1))

    def step(self, *_: object) -> None:
        """One more step."""
        if next(self._left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Commands(monitoring.CommandListener):
    """The steps of a client of MongoDB."""

    def __init__(self, killer: Killer) -> None:
        """Count with *killer*."""
        self._killer = killer

    def started(self, event: object) -> None:
        """A command is about to be sent."""
        self._killer.step(event)

    def succeeded(self, event: object) -> None:
        """A command was answered."""
        self._killer.step(event)

    def failed(self, event: object) -> None:
        """Nothing is done by a command that failed."""


def sql(url: str, killer: Killer, strategy: str) -> Callable[[str, str], str]:
    """Charge an order, by its key, in an SQL database."""
    engine = sa.create_engine(url, pool_size=20)
    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sa.event.listen(engine, name, killer.step)
    sa.event.listen(engine, "checkin", killer.step)

    def charge(session: Session, order_id: str) -> str:
        payment = uuid.uuid4().hex
        session.execute(_INSERT, {"id": payment, "order_id": order_id})
        return payment

    once = calls.once(engine, timeout=20, duplicates=20, name="charge")(charge)

    def plain(_: str, order_id: str) -> str:
        with Session(engine) as session:
            payment = charge(session, order_id)
            session.commit()
            return payment

    def afterwards(key: str, order_id: str) -> str:
        with Session(engine) as session:
            kept = session.scalar(_FIND, {"id": key})
        if kept is not None:
            return str(kept)
        payment = plain(key, order_id)
        with Session(engine) as session:
            session.execute(_KEEP, {"id": key, "reply": payment})
            session.commit()
        return payment

    def only_once(_: str, order_id: str) -> str:
        return str(once(order_id))

    return {"plain": plain, "after_commit": afterwards, "once": only_once}[strategy]


def mongodb(url: str, killer: Killer, strategy: str) -> Callable[[str, str], str]:
    """Charge an order, by its key, in MongoDB."""
    client: Any = pymongo.MongoClient(url, event_listeners=[Commands(killer)])
    shop = client["shop"]

    def charge(session: Any, order_id: str) -> str:  # noqa: ANN401 - the driver's
        payment = uuid.uuid4().hex
        shop["payments"].insert_one({"_id": payment, "order_id": order_id}, session=session)
        return payment

    once = calls.once(shop, timeout=20, duplicates=20, name="charge")(charge)

    def plain(_: str, order_id: str) -> str:
        return charge(None, order_id)

    def afterwards(key: str, order_id: str) -> str:
        kept = shop[KEPT].find_one({"_id": key})
        if kept is not None:
            return str(kept["reply"])
        payment = charge(None, order_id)
        shop[KEPT].insert_one({"_id": key, "reply": payment})
        return payment

    def only_once(_: str, order_id: str) -> str:
        return str(once(order_id))

    return {"plain": plain, "after_commit": afterwards, "once": only_once}[strategy]


def service(url: str, strategy: str, killer: Killer) -> uvicorn.Server:
    """What serves, made before it is forked; clients are made after that, when they are used."""
    app = FastAPI()
    calls.instrument_server(app)

    @functools.cache
    def charging() -> Callable[[str, str], str]:
        if url.startswith("mongodb"):
            return mongodb(url, killer, strategy)
        return sql(url, killer, strategy)

    @app.post("/charge")
    def pay(payment: Payment, idempotency_key: Annotated[str, Header()]) -> dict[str, str]:
        paid = {"payment": charging()(idempotency_key, payment.order_id)}
        killer.step()
        return paid

    config = uvicorn.Config(app, log_level="critical", access_log=False)
    config.load()
    return uvicorn.Server(config)


def main() -> None:
    """Serve, one process after the other, until the parent is told to end."""
    url, strategy, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
    killer = Killer()
    server = service(url, strategy, killer)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        for number in itertools.count():
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                killer.begin(1 + 37 * number % most)  # Each process ends at another step.
                server.run(sockets=[listening])
                os._exit(0)
            signal.signal(signal.SIGTERM, lambda *_, child=child: _end(child))
            os.waitpid(child, 0)


def _end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
