"""Table 2 over PyMongo's asyncio client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import StaleRead, recorded
from antipode_shims.mongodb._clients.pymongo import pymongo_module, refusals, slow_errors
from antipode_shims.mongodb._look import HELLO, converse_async
from antipode_shims.mongodb._promises.fulfil import fulfil_async
from antipode_shims.mongodb._table2 import MongoTable2, late, slice_s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from antipode import Lineage, Promise
    from antipode.shim import Floor, Observation
    from antipode_shims.mongodb._look import Question
    from antipode_shims.mongodb._position.reply import Reply
    from antipode_shims.mongodb._table2 import Answer, Kept


class MongoAsyncShim(MongoTable2):
    """Table 2 of one collection over asyncio. Made by :func:`shim_async`."""

    def __init__(
        self, datastore: str, client: Any, collection: Any, *, owned: bool, **options: Any
    ) -> None:
        """Use *client*; an *owned* one is closed by :meth:`aclose`."""
        super().__init__(datastore, collection, **options)
        self._client = client
        self._owned = owned

    @recorded("write")
    async def write(
        self,
        key: Any,
        value: Any,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As :meth:`MongoShim.write`; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        return await self._send(self._write(key, value, base), base, fulfils)

    async def update(
        self,
        key: Any,
        changes: Mapping[str, Any],
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As :meth:`MongoShim.update`."""
        base = self.base(lineage)
        return await self._send(self._change(key, changes, base), base, fulfils)

    @recorded("delete")
    async def delete(
        self, key: Any, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """As :meth:`MongoShim.delete`."""
        base = self.base(lineage)
        await self._send(self._bury(key, base), base)
        return await self._send(self._remove(key), base, fulfils)

    async def _send(
        self, question: Question, base: Lineage, fulfils: Promise | str | None = None
    ) -> Lineage:
        await self._prepare()
        if fulfils is not None:
            return await self._keep(question, base, fulfils)
        database, command = question
        try:
            reply = await self._client[database].command(command)
        except BaseException as error:
            self.failed(error)
            raise
        return self.written(reply, base)

    async def _keep(self, question: Question, base: Lineage, promise: Promise | str) -> Lineage:
        client = self._client
        written = False

        async def write(session: Any) -> Reply:
            nonlocal written
            written = False
            await fulfil_async(client[self.promised_in], promise, session=session)
            command = self.within(question)
            told = self.taken(await client[question[0]].command(command, session=session))
            written = True
            return told

        async with client.start_session() as session:
            try:
                told = await session.with_transaction(
                    write, write_concern=self._collection.write_concern
                )
            except BaseException as error:
                if written:
                    self.commit_failed(error)
                raise
            operation = session.operation_time
        try:
            now: Reply | None = await client.admin.command(HELLO[1])
        except pymongo_module().errors.PyMongoError:
            now = None
        return self.committed(told, operation, now, base)

    async def _prepare(self) -> None:
        if not (self.set_name or self.learned()):
            self.learn(await self._ask(HELLO))

    @recorded("read")
    async def read(self, key: Any) -> tuple[Any, Lineage]:
        """As :meth:`MongoShim.read`."""
        await self._prepare()
        stale = StaleRead()
        answers: list[Answer] = []
        if (held := self.floor(stale)) is not None:
            await held.hold_async(self._observing(held, key, answers, []))
        if not answers:  # Nothing holds it back, or it was not shown what it depends on.
            answers.append(await converse_async(self._ask, self._read(key)))
        stale.answered()
        return self.seen(answers[0])

    def _observing(
        self, held: Floor, key: Any, answers: list[Answer], kept: list[Kept]
    ) -> Callable[[float], Awaitable[Observation]]:
        async def observe(timeout_s: float) -> Observation:
            try:
                with pymongo_module().timeout(slice_s(timeout_s)):
                    return await converse_async(self._ask, self._held(held, key, answers, kept))
            except slow_errors() as error:
                return late(error, held.writes)

        return observe

    async def _ask(self, question: Question) -> Reply | Exception:
        database, command = question
        try:
            reply: Reply = await self._client[database].command(
                dict(command),
                read_preference=self._collection.read_preference,
                codec_options=self._collection.codec_options,
            )
        except slow_errors():
            raise
        except refusals() as error:
            return error
        return reply

    async def aclose(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        self.close()
        if self._owned:
            await self._client.close()
