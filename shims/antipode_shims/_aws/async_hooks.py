"""The handlers of an instrumented client of aiobotocore."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from antipode.shim import shared_watcher

from .botocore import own_call
from .hooks import BaseHooks

if TYPE_CHECKING:
    from antipode.shim import Floor, Observation

    from .call import BaseCall, Question
    from .shim import RegionShim


class AsyncHooks(BaseHooks):
    """The handlers of a client of aiobotocore."""

    async def before(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        """Hold a read back, or prepare a write; as ``SyncHooks.before``."""
        call = self._begin(model.name, params, context)
        if call is None:
            return
        held = self._floor(call, params)
        if held is not None:
            await hold(self.shim, held)
        for question in self.calls.questions(call, params):
            await self._ask(call, question)
        self._plan(call, params, context)

    async def _ask(self, call: BaseCall, question: Question) -> None:
        try:
            with own_call():
                answer = await getattr(self._client, question.method)(**question.params)
            self.calls.learn(call, question, answer)
        except Exception as error:  # noqa: BLE001 - what is not known marks the lineage
            self.calls.not_followed(call, error)


class AsyncClient:
    """Mixed into the class of an instrumented client of aiobotocore."""

    _antipode: AsyncHooks

    async def _make_request(
        self, operation_model: Any, request_dict: Any, request_context: Any
    ) -> Any:
        plain: Any = super()
        try:
            return await plain._make_request(operation_model, request_dict, request_context)  # noqa: SLF001
        except BaseException as error:
            self._antipode.interrupted(error, request_context)
            raise


async def hold(shim: RegionShim, held: Floor) -> None:
    """Hold a read back; the event loop waits for no poll.

    Raises:
        UnmetError: it was not shown what it must see.
    """

    async def observe(_: float) -> Observation:
        return await asyncio.to_thread(shim.observing, held)

    await held.hold_async(observe, watcher=shared_watcher(shim))
