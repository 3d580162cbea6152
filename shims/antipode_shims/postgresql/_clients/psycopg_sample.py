"""psycopg 3: a write that commits alone, and the question for its position, in one flush.

In libpq's pipeline mode: the statement, a Sync, `SAMPLE`, a Sync. The first Sync commits, so that
the position is never of the statement's own transaction. Import only where psycopg is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import generators, pq
from psycopg._preparing import Prepare

from antipode.shim import takes_short_ways
from antipode_shims.postgresql._look import SAMPLE

if TYPE_CHECKING:
    from collections.abc import Generator

    from .holding import Call

#: How statements begin that may be sent so: others cannot all run there, or do more than write.
_WORDS = ("INSERT", "UPDATE", "DELETE", "MERGE ")
#: Cursors that send their values within the text, by the simple protocol.
_SIMPLE = psycopg.ClientCursor, psycopg.AsyncClientCursor
_SUPPORTED = psycopg.Pipeline.is_supported() and takes_short_ways()
_SYNC = pq.ExecStatus.PIPELINE_SYNC
_SAMPLE = SAMPLE.encode()
#: What the client says of statements that it sends without a PREPARE.
_AT_ONCE = Prepare.NO, Prepare.YES


def goes_along(gen: Any, call: Call) -> bool:
    """Whether *gen*, which sends *call* and no more, may be followed by the question.

    A statement without parameters is sent by the simple protocol, which libpq refuses there.
    """
    return (
        _SUPPORTED
        and gen.gi_code.co_name == "_execute_gen"
        and not isinstance(call.cursor, _SIMPLE)
        and bool(gen.gi_frame.f_locals.get("params"))
        and (call.sql or "").lstrip()[:6].upper() in _WORDS
    )


class Flight:
    """One statement on its way, with the question after it.

    Attributes:
        sample: the answer; None before it came.
    """

    def __init__(self, connection: Any, gen: Any, cursor: Any) -> None:
        """Of what *gen* sends for *cursor* of *connection*, which commits each statement."""
        self.sample: Any = None
        self._cursor, self._connection = cursor, connection
        self._pgconn = connection.pgconn
        self._gen = gen
        #: What sends a PREPARE; None where none was sent.
        self._preparing: Any = None
        self._asked = self._landed = False

    def drive(self) -> Generator[Any, Any, Any]:
        """Drive the statement's generator, and ask; what it returns.

        Raises:
            psycopg.Error: the statement failed, or its commit.
        """
        gen, pgconn = self._gen, self._pgconn
        pgconn.enter_pipeline_mode()
        try:
            wanted = next(gen)
            while True:
                if not self._asked:
                    self._sent()
                ready = yield wanted
                wanted = gen.send(ready)
        except StopIteration as end:
            yield from self.land()
            return end.value
        except GeneratorExit:  # Given up; who does that closes the connection.
            gen.close()
            raise
        except BaseException:
            yield from self.land(failed=True)
            raise

    def _sent(self) -> None:
        """Something is sent: a statement, which the question follows, or a PREPARE of it first."""
        within = self._gen.gi_yieldfrom
        frame = getattr(within, "gi_frame", None)
        prepare = None if frame is None else frame.f_locals.get("prep")
        sending = getattr(within, "gi_yieldfrom", None)
        if prepare in _AT_ONCE:
            self._ask()
        elif self._preparing is None:
            self._preparing = sending
            self._pgconn.send_flush_request()
            self._pgconn.flush()
        elif sending is not self._preparing:
            self._ask()

    def _ask(self) -> None:
        pgconn = self._pgconn
        self._asked = True
        pgconn.pipeline_sync()
        pgconn.send_query_params(_SAMPLE, None)
        pgconn.pipeline_sync()

    def land(self, *, failed: bool = False) -> Generator[Any, Any, None]:
        """Receive what follows the statement's replies, and leave the pipeline mode.

        Raises:
            psycopg.Error: the commit failed, unless the statement has *failed* already.
        """
        if self._landed:
            return
        self._landed = True
        pgconn = self._pgconn
        if pgconn.status != pq.ConnStatus.OK:
            return
        error = None
        if self._asked or self._preparing is not None:
            if not self._asked:
                self._ask()
                yield from generators.send(pgconn)
            while (results := (yield from generators.fetch_many(pgconn)))[0].status != _SYNC:
                error = results[0]  # A constraint that is checked at the commit.
            self.sample = (yield from generators.fetch_many(pgconn))[-1]
            yield from generators.fetch_many(pgconn)
        pgconn.exit_pipeline_mode()
        if error is not None and not failed:
            self._cursor._reset(reset_query=False)  # noqa: SLF001 - as if it had had no results
            encoding = self._connection.info.encoding
            raise psycopg.errors.error_from_result(error, encoding=encoding)
