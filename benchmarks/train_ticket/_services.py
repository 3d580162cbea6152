"""The services as processes: one JVM each, and the notification service in Python."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antipode_testing import ServerFailed, ServerProcess
from benchmarks._machine import ROOT

from ._build import agent, class_path
from ._variants import TrainTicketError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ._stores import Stores
    from ._variants import Variant

#: Sizes that a service of this kind needs; the second compiler costs more than it brings here.
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-Xmx96m", "-XX:-UsePerfData")
#: OpenTelemetry's agent with what propagates its context, and nothing else.
_PROPAGATES = ("tomcat", "java-http-client", "http-url-connection", "rabbitmq", "spring-rabbit")
_AGENT = (
    "-Dotel.instrumentation.common.default-enabled=false",
    *(f"-Dotel.instrumentation.{it}.enabled=true" for it in _PROPAGATES),
    *(f"-Dotel.{it}.exporter=none" for it in ("traces", "metrics", "logs")),
    "-Dotel.propagators=tracecontext,baggage",
)
#: Kinds of services without the library.
_WITHOUT = ("baseline", "propagation")
_START_S = 180.0
_TOMCAT = re.compile(r"Tomcat started on port (\d+)")
_UVICORN = re.compile(r"running on http://127\.0\.0\.1:(\d+)")
_MAINS = {
    "auth": "trainticket.auth.AuthApplication",
    "cancel": "trainticket.cancel.CancelApplication",
    "inside-payment": "trainticket.insidepayment.InsidePaymentApplication",
    "order": "trainticket.order.OrderApplication",
    "payment": "trainticket.payment.PaymentApplication",
    "user": "trainticket.user.UserApplication",
}


@dataclass(frozen=True, slots=True)
class Edge:
    """What a user calls, each by its address.

    Attributes:
        auth: logs in.
        cancel: cancels.
        look_up: shows refunds.
        notification: shows what a user was told.
        database: where refunds are.
    """

    auth: str
    cancel: str
    look_up: str
    notification: str
    database: str


def _agent() -> tuple[str, ...]:
    return (f"-javaagent:{agent()}", *_AGENT)


class Service:
    """One process, which says its port in its log once it listens."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        listening: re.Pattern[str],
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        """Start nothing yet."""
        self.name = name
        self._command = command
        self._listening = listening
        self._folder = folder
        self._environment = environment
        self._starts = 0
        self._at = "0"
        self.process = self._prepared()

    @property
    def log(self) -> Path:
        """What the process printed since it was started last."""
        return self._folder / f"{self._named()}.out"

    def _named(self) -> str:
        return self.name if self._starts == 1 else f"{self.name}-{self._starts}"

    def _prepared(self) -> ServerProcess:
        """A process that is to listen where it did; the first one wherever there is room."""
        # Each start has a log of its own: a port in an earlier one says nothing of this one.
        self._starts += 1
        return ServerProcess(
            self._named(),
            [it.replace("{port}", self._at) for it in self._command],
            directory=self._folder,
            ready=lambda: bool(self._port()),
            environment={**self._environment, "PORT": self._at},
            timeout_s=_START_S,
        )

    def kill(self) -> None:
        """End it at once."""
        self._at = self._port()
        self.process.kill()

    def start_again(self) -> None:
        """Start it where it listened, and return once it does.

        Raises:
            TrainTicketError: it ended, or did not listen in time.
        """
        self.process = self._prepared()
        self.process.launch()
        self.url()

    def url(self) -> str:
        """Where it listens, once it does.

        Raises:
            TrainTicketError: it ended, or did not listen in time.
        """
        try:
            self.process.await_ready()
        except ServerFailed as error:
            raise TrainTicketError(str(error)) from error
        return f"http://127.0.0.1:{self._port()}"

    def stop(self) -> None:
        """End it in order."""
        self.process.stop()

    def _port(self) -> str:
        found = self._listening.search(self.log.read_text(encoding="utf-8", errors="replace"))
        return found[1] if found else ""


class Services:
    """All services of some variants, for the block: those that do not differ are shared.

    Args:
        stores: that they use.
        folder: for their logs.
        variants: which.
        patience_s: for how long barriers wait at the most.
        dry_run_dir: where services with the library record a dry run; None: there is none.
    """

    def __init__(
        self,
        stores: Stores,
        folder: Path,
        variants: Sequence[Variant],
        *,
        patience_s: float = 5.0,
        dry_run_dir: Path | None = None,
    ) -> None:
        """Start nothing yet."""
        self._stores = stores
        self._folder = folder
        self._variants = variants
        self._dry_run_dir = dry_run_dir
        patience = f"{patience_s * 1000:.0f}ms"
        #: Of cancel and inside-payment.
        self._patience = (
            f"--train-ticket.patience={patience}",
            f"--antipode.auto-timeout={patience}",
        )
        self._stack = ExitStack()
        #: What users call, by the name of the variant.
        self.edges: dict[str, Edge] = {}
        #: Every process, by its name.
        self.running: dict[str, Service] = {}

    def __enter__(self) -> Self:
        """Start them.

        Raises:
            TrainTicketError: one did not start; the message has the end of its log.
        """
        with self._stack:
            for kind in dict.fromkeys(it.kind for it in self._variants):
                self._start(kind, [it for it in self._variants if it.kind == kind])
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop them."""
        self._stack.close()

    def of(self, variant: Variant) -> dict[str, int]:
        """The processes that serve a variant: their numbers, by the name of the service."""
        found = {}
        for name, service in self.running.items():
            for prefix in (f"{variant.kind}-", f"{variant.name}-"):
                if name.startswith(prefix) and service.process.pid is not None:
                    found[name.removeprefix(prefix)] = service.process.pid
        return found

    def _start(self, kind: str, variants: Sequence[Variant]) -> None:
        """Start the services of one kind: callees before their callers."""
        database = f"train_ticket_{kind}"
        self._stores.create_collections(database)
        user, payment = (self._java(it, it, kind, self._sql()) for it in ("user", "payment"))
        orders = [
            self._java("order", "order", kind, self._orders("orders")),
            self._java("order", "order-other", kind, self._orders("orders_other")),
        ]
        notification = self._notification(kind, database)
        auth = self._java(
            "auth", "auth", kind, [f"--train-ticket.user-url={user.url()}", *self._redis()]
        )
        refunds = [f"--train-ticket.payment-url={payment.url()}", *self._broker(kind)]
        self._java("inside-payment", "inside-payment", kind, [*refunds, *self._mongodb(database)])
        there = {}
        for variant in variants:
            name = variant.name
            look_up = [
                *(
                    *refunds,
                    *self._mongodb(database, reads=True),
                    *variant.look_up,
                    *self._patience,
                ),
                "--train-ticket.makes-refunds=false",
            ]
            cancel = [
                f"--train-ticket.auth-url={auth.url()}",
                f"--train-ticket.user-url={user.url()}",
                f"--train-ticket.order-urls={','.join(it.url() for it in orders)}",
                *(*self._broker(kind), *variant.cancel, *self._patience),
                *(self._mongodb(database, reads=True) if kind == "antipode" else ()),
            ]
            there[name] = (
                self._java("cancel", "cancel", name, cancel),
                self._java("inside-payment", "look-up", name, look_up),
            )
        for name, (cancel_, look_up_) in there.items():
            self.edges[name] = Edge(
                auth.url(), cancel_.url(), look_up_.url(), notification.url(), database
            )
        for service in self.running.values():
            service.url()

    def _java(self, module: str, name: str, of: str, settings: Sequence[str]) -> Service:
        """Start a service in a JVM, and do not wait for it."""
        library = of not in _WITHOUT
        flags = (*_JVM, *_agent()) if of == "propagation" else _JVM
        command = [
            *("java", *flags, "-cp", class_path(module, library=library), _MAINS[module]),
            *(
                "--server.port={port}",
                *settings,
            ),
        ]
        environment = self._common(name, library=library)
        return self._launch(Service(f"{of}-{name}", command, _TOMCAT, self._folder, environment))

    def _notification(self, of: str, database: str) -> Service:
        environment = {
            "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)),
            "REDIS_URL": self._stores.redis.url(),
            "RABBITMQ_URL": self._stores.rabbitmq.url(),
            "MONGODB_URL": self._stores.mongodb_url(reads=True),
            "MONGODB_DATABASE": database,
            "NOTIFICATIONS_QUEUE": f"notifications-{of}",
            **self._common("notification", library=of not in _WITHOUT),
        }
        if of not in _WITHOUT:
            environment["TRAIN_TICKET_ANTIPODE"] = "yes"
            if self._dry_run_dir is None:
                environment["TRAIN_TICKET_NOTIFICATION_WAITS"] = "yes"
        if self._stores.two_regions:
            environment["TRAIN_TICKET_REPLICA"] = "yes"
        command = [sys.executable, "-m", "benchmarks.train_ticket.notification"]
        name = f"{of}-notification"
        return self._launch(Service(name, command, _UVICORN, self._folder, environment))

    def _common(self, name: str, *, library: bool) -> dict[str, str]:
        """Variables of every service."""
        named = {"OTEL_SERVICE_NAME": name}
        if not library or self._dry_run_dir is None:
            return named
        folder = str(self._dry_run_dir)
        return {**named, "ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": folder}

    def _launch(self, service: Service) -> Service:
        self.running[service.name] = service
        self._stack.callback(service.stop)
        service.process.launch()
        return service

    # What services are told of the stores.

    def _sql(self) -> list[str]:
        mysql = self._stores.mysql
        return [
            f"--spring.datasource.url=jdbc:mysql://{mysql.primary}/{mysql.database}",
            f"--spring.datasource.username={mysql.user}",
            f"--spring.datasource.password={mysql.password}",
        ]

    def _orders(self, table: str) -> list[str]:
        mysql, away = self._stores.mysql, self._stores.two_regions
        settings = [f"--train-ticket.table={table}"]
        for pool, place in (
            ("primary", mysql.primary),
            ("replica", mysql.replica if away else mysql.primary),
        ):
            settings += [
                f"--train-ticket.{pool}.jdbc-url=jdbc:mysql://{place}/{mysql.database}",
                f"--train-ticket.{pool}.username={mysql.user}",
                f"--train-ticket.{pool}.password={mysql.password}",
                f"--antipode.mysql.pools.{pool}.datastore={table.replace('_', '-')}",
            ]
        return [
            *settings,
            *(("--antipode.mysql.pools.replica.reads-from=replica",) if away else ()),
        ]

    def _redis(self) -> list[str]:
        place = self._stores.redis.primary
        return [f"--spring.data.redis.url=redis://{place}"]

    def _broker(self, of: str) -> list[str]:
        return [
            f"--spring.rabbitmq.addresses={self._stores.rabbitmq.primary}",
            f"--train-ticket.refunds-queue=refunds-{of}",
            f"--train-ticket.notifications-queue=notifications-{of}",
        ]

    def _mongodb(self, database: str, *, reads: bool = False) -> list[str]:
        away = reads and self._stores.two_regions
        return [
            f"--spring.data.mongodb.uri={self._stores.mongodb_url(reads=reads)}",
            f"--spring.data.mongodb.database={database}",
            *(("--antipode.mongodb.reads-from=replica",) if away else ()),
        ]
