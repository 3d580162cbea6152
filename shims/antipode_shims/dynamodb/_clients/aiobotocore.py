"""The handlers of an instrumented client of aiobotocore."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from antipode.shim import shared_watcher

from .botocore import own_call
from .hooks import BaseHooks

if TYPE_CHECKING:
    from antipode.shim import Floor, Observation
    from antipode_shims.dynamodb._shim.base import BaseDynamoDBShim

    from .call import Call


class AsyncHooks(BaseHooks):
    """The handlers of a client of aiobotocore."""

    async def before(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        """Hold a read back, or stamp a write; as ``SyncHooks.before``."""
        call = self._begin(model.name, params, context)
        if call is None:
            return
        held = self._floor(call, params)
        if held is not None:
            await hold(self.shim, held)
        for table in self.calls.unknown_tables(call, params):
            await self._describe(call, table)
        self._plan(call, params, context)

    async def _describe(self, call: Call, table: str) -> None:
        try:
            with own_call():
                described = await self._client.describe_table(TableName=table)
            self.calls.learn(table, described)
        except Exception as error:  # noqa: BLE001 - what is put there is marked
            self.calls.not_followed(call, error)


async def hold(shim: BaseDynamoDBShim, held: Floor) -> None:
    """Hold a read back; the event loop waits for no look.

    Raises:
        UnmetError: it was not shown what it must see.
    """

    async def observe(_: float) -> Observation:
        return await asyncio.to_thread(shim.observing, held)

    await held.hold_async(observe, watcher=shared_watcher(shim))
