"""Sessions of Django over PostgreSQL: requests that are one transaction, and caught errors."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import django
import django.db
import psycopg
from django.conf import settings
from django.db import connections, models, transaction

from antipode_shims import postgresql

from .bench import DATASTORE, OFTEN, Fault, step
from .both import Awaited
from .connected import AsCalls
from .postgresql import APPLICATION, INNER, PostgreSQL

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

#: The aliases of the two servers.
PRIMARY, REPLICA = "default", "replica"
#: Kept rows before the new ones.
NEWEST = "-n"

if not settings.configured:
    settings.configure(USE_TZ=True)
    django.setup()


class Kept(models.Model):  # noqa: DJ008 - nobody reads it
    """A row of the session's."""

    n = models.BigIntegerField(primary_key=True)
    v = models.IntegerField()

    class Meta:
        """As it stands in the database."""

        app_label = "sessions"
        db_table = "kept"
        managed = False


class Note(models.Model):  # noqa: DJ008 - nobody reads it
    """A row of the other client's."""

    n = models.BigIntegerField(primary_key=True)

    class Meta:
        """As it stands in the database."""

        app_label = "sessions"
        db_table = "notes"
        managed = False


class Undone(Exception):  # noqa: N818 - the view's own
    """A view that fails after its writes."""


class Django(AsCalls, PostgreSQL):
    """A thread's connection of each alias, as requests use them."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (
        psycopg.Error,
        django.db.Error,
        Undone,
        UnicodeError,
    )

    async def connect(self, *, replica: bool) -> Any:
        """Of an alias, whose settings name the server."""
        alias = REPLICA if replica else PRIMARY
        server = self.topology.replica if replica else self.topology.primary
        found = connections.configure_settings({PRIMARY: {}, alias: self._settings(server)})
        found[alias]["AUTOCOMMIT"] = self.autocommit or replica
        connections.settings[alias] = found[alias]
        postgresql.instrument_django(
            alias, datastore=DATASTORE, reads_from="replica" if replica else "primary"
        )
        connections[alias].ensure_connection()
        return Awaited(connections[alias])

    def _settings(self, server: Any) -> dict[str, Any]:
        account = {"USER": self.topology.user, "PASSWORD": self.topology.password}
        return {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": server.host,
            "PORT": server.port,
            "NAME": self.topology.database,
            "OPTIONS": {"application_name": APPLICATION},
            **account,
        }

    def gone(self) -> bool:
        """Its client's connection is closed."""
        held = self.session.part.connection
        return held is None or bool(held.closed)

    async def roll_back(self) -> None:
        """``rollback()``."""
        self.session.part.rollback()

    async def disconnect(self, connection: Any) -> None:
        """Close it, and forget the alias."""
        alias = connection.part.alias
        with contextlib.suppress(*self.refusals):
            connection.part.close()
        postgresql.uninstrument_django(alias)
        del connections[alias]

    async def send(self, text: str, *args: Any) -> list[Any]:
        """By a cursor."""
        await self.whole()
        return self._sent(text, *args)

    def _sent(self, text: str, *args: Any) -> list[Any]:
        self.trace.append(text)
        return self._rows(self.session.part, text, *args)

    def _rows(self, connection: Any, text: str, *args: Any) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(text, args or None)
            return list(cursor.fetchall()) if cursor.description else []

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """By the library's own way to ask."""
        found: Sequence[Any] = self.session.part.connection._antipode_ask(text)
        return found

    async def read_replica(self, text: str) -> list[Any]:
        """The same rows by the ORM."""
        return list(Kept.objects.using(REPLICA).order_by("n").values_list("n", "v"))

    @property
    def _kept(self) -> Any:
        return Kept.objects.using(PRIMARY)

    @step(OFTEN)
    async def method_commit(self, choose: random.Random) -> None:
        """``commit()``."""
        await self.whole()
        self.trace.append("commit()")
        transaction.commit(PRIMARY)

    @step(OFTEN)
    async def method_rollback(self, choose: random.Random) -> None:
        """``rollback()``."""
        await self.whole()
        self.trace.append("rollback()")
        transaction.rollback(PRIMARY)

    @step(OFTEN)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values."""
        await self.send("INSERT INTO kept VALUES (%s, %s)", self.number(), 8)

    @step(OFTEN)
    async def orm(self, choose: random.Random) -> None:
        """One call of the ORM."""
        await self.whole()
        self._call(choose)

    @step(OFTEN)
    async def request(self, choose: random.Random) -> None:
        """A view under ``ATOMIC_REQUESTS``: it reads, writes, catches errors, perhaps fails."""
        await self.whole()
        self.trace.append("with atomic():")
        with transaction.atomic(PRIMARY):
            self._calls(choose)
            if choose.random() < 0.5:
                self._caught(choose)
            if choose.random() < 0.5:
                await self._read_in_request()
            if choose.random() < 0.2:
                self.trace.append("raise")
                raise Undone
            if choose.random() < 0.2:
                self.trace.append("set_rollback(True)")
                transaction.set_rollback(rollback=True, using=PRIMARY)

    async def _read_in_request(self) -> None:
        wanted = self.floor()
        self.trace.append(wanted)
        if not self._sent(wanted):
            raise Fault("early", f"{wanted} shows no row in a request")

    @step(4)
    async def caught(self, choose: random.Random) -> None:
        """An IntegrityError, which the application catches, and goes on."""
        await self.whole()
        with contextlib.suppress(django.db.Error):
            self._caught(choose)
        self._call(choose)

    def _caught(self, choose: random.Random) -> None:
        """With a savepoint, or without: then the block ends in a rollback."""
        savepoint = choose.random() < 0.7
        self.trace.append(f"with atomic(savepoint={savepoint}), its error is caught:")
        block = transaction.atomic(PRIMARY, savepoint=savepoint)
        with contextlib.suppress(django.db.IntegrityError), block:
            self._calls(choose)
            if choose.random() < 0.5:
                self._twice()

    def _twice(self) -> None:
        number = self.number()
        self.trace.append(f"create {number}, twice")
        for _ in range(2):
            self._kept.create(n=number, v=9)

    def _calls(self, choose: random.Random) -> None:
        for _ in range(choose.randrange(1, 4)):
            self._call(choose)

    def _call(self, choose: random.Random) -> None:
        name = choose.choice(("create", "save", "get_or_create", "update", "bulk", "text", "read"))
        number = self.number()
        self.trace.append(f"{name} {number}")
        getattr(self, f"_{name}")(choose, number)

    def _create(self, choose: random.Random, number: int) -> None:
        self._kept.create(n=number, v=7)

    def _save(self, choose: random.Random, number: int) -> None:
        Kept(n=number, v=7).save(using=PRIMARY)

    def _get_or_create(self, choose: random.Random, number: int) -> None:
        wanted = choose.choice((number, 1))
        if choose.random() < 0.5:
            self._kept.get_or_create(n=wanted, defaults={"v": 7})
        else:
            self._kept.update_or_create(n=wanted, defaults={"v": number})

    def _update(self, choose: random.Random, number: int) -> None:
        last = self._kept.order_by(NEWEST).values("n")[:1]
        if choose.random() < 0.5:
            self._kept.filter(n__in=last).update(v=models.F("v") + 1)
        else:
            self._kept.filter(n__in=last).delete()

    def _bulk(self, choose: random.Random, number: int) -> None:
        rows = [Kept(n=self.number(), v=7) for _ in range(choose.randrange(1, 4))]
        rows += [Kept(n=rows[0].n, v=7)] if choose.random() < 0.3 else []
        self._kept.bulk_create(rows, ignore_conflicts=choose.random() < 0.5)

    def _text(self, choose: random.Random, number: int) -> None:
        self._sent(choose.choice(INNER).replace("{n}", str(number)))

    def _read(self, choose: random.Random, number: int) -> None:
        rows = self._kept.order_by("n")[:3]
        if choose.random() < 0.3:
            with transaction.atomic(PRIMARY):
                list(rows.select_for_update())
        else:
            list(rows)

    @step(4)
    async def on_commit(self, choose: random.Random) -> None:
        """A function that runs after the commit, and writes."""
        await self.whole()
        self.trace.append("with atomic(), and a write on_commit:")
        with transaction.atomic(PRIMARY):
            self._call(choose)
            transaction.on_commit(lambda: self._call(choose), using=PRIMARY)

    @step(OFTEN)
    async def iterator(self, choose: random.Random) -> None:
        """``.iterator()`` under a floor, in a transaction or without: by a cursor at the server."""
        await self.whole()
        number = int(self.floor().rpartition(" ")[2])
        self.trace.append(f".iterator() of notes, {number} is new")
        found = Note.objects.using(PRIMARY).order_by(NEWEST).iterator(chunk_size=2)
        try:
            first = next(found, None)
            if choose.random() < 0.5:
                list(found)
        finally:
            found.close()
        if first is None or first.n != number:
            raise Fault("early", f"note {number} is not shown by iterator()")

    @step()
    async def switched(self, choose: random.Random) -> None:
        """``set_autocommit``."""
        await self.whole()
        wanted = choose.random() < 0.5
        self.trace.append(f"set_autocommit({wanted})")
        transaction.set_autocommit(wanted, PRIMARY)
        self.autocommit = wanted

    @step()
    async def closed(self, choose: random.Random) -> None:
        """``close()``, as at the end of a request: Django connects again."""
        await self.whole()
        self.trace.append("close()")
        self.session.part.close()
        self.session.part.ensure_connection()
