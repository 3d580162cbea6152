"""The handlers of an instrumented client of boto3, and those that aiobotocore's share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import StaleSnapshot
from antipode.shim import count, floor, shared_watcher

from .botocore import is_own_call, own_call
from .call import Calls
from .reads import consistent

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor
    from antipode_shims.dynamodb._shim.base import BaseDynamoDBShim

    from .call import Call

_CALL = "antipode_dynamodb"
_TOKEN = "antipode_dynamodb_token"  # noqa: S105 - a name in a context


class BaseHooks:
    """What both APIs share.

    Attributes:
        shim: what the client registered.
        calls: what is decided.
    """

    def __init__(
        self, shim: BaseDynamoDBShim, client: Any, keys: dict[str, tuple[str, ...]]
    ) -> None:
        """Follow the calls of *client*."""
        self.shim = shim
        self.calls = Calls(shim, keys)
        self._client = client

    def register(self) -> None:
        """Handle the events of the client: ours see what goes out last, and comes back first."""
        events = self._client.meta.events
        for register, event, handler in self._handlers():
            getattr(events, register)(event, handler, unique_id=f"antipode-{event}")

    def unregister(self) -> None:
        """Undo :meth:`register`."""
        events = self._client.meta.events
        for _, event, handler in self._handlers():
            events.unregister(event, handler, unique_id=f"antipode-{event}")

    def _handlers(self) -> tuple[tuple[str, str, Callable[..., Any]], ...]:
        return (
            ("register_first", "provide-client-params.dynamodb", self._given),
            ("register_last", "before-parameter-build", self.before),
            ("register_last", "request-created.dynamodb", self._created),
            ("register_first", "after-call.dynamodb", self._replied),
            ("register_first", "after-call-error.dynamodb", self._failed),
        )

    #: Handles ``before-parameter-build``.
    before: Callable[..., Any]

    def _given(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if "ClientRequestToken" in params:
            context[_TOKEN] = True

    def _begin(
        self, operation: str, params: dict[str, Any], context: dict[str, Any]
    ) -> Call | None:
        """The call that begins; None for one that is not followed."""
        if is_own_call():
            return None
        call = self.calls.begin(operation, params)
        if context.get("is_presign_request"):  # Somebody else makes it, some time.
            count("presigned", self.shim.datastore)
            return None
        return call

    def _floor(self, call: Call, params: dict[str, Any]) -> Floor | None:
        """What a read must see before it is sent, if it is to wait.

        Raises:
            UnmetError: as :func:`floor`.
            StaleSnapshot: the read cannot show it, such as one of a global index.
        """
        if not self.calls.reads(call, params):
            return None
        held = floor(self.shim)
        if held is None:
            return None
        if why := consistent(call.operation, params):
            held.fail_snapshot(StaleSnapshot(why), lambda _: False)
            return None
        if self.shim.is_proved(held):
            held.passed()
            return None
        return held

    def _plan(self, call: Call, params: dict[str, Any], context: dict[str, Any]) -> None:
        changed = dict(params)
        try:
            self.calls.plan(call, changed, own_token=_TOKEN in context)
        except Exception as error:  # noqa: BLE001 - a call goes its way, whatever fails here
            self.calls.not_followed(call, error)
        else:
            params.update(changed)
        context[_CALL] = call

    def _created(self, request: Any, **_: Any) -> None:
        call = request.context.get(_CALL)
        if call is not None:
            call.attempts += 1

    def _replied(
        self, http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any
    ) -> None:
        if (call := context.get(_CALL)) is None:
            return
        try:
            self.calls.replied(call, http_response.status_code, parsed)
        except Exception as error:  # noqa: BLE001 - it was made, and must not look failed
            self.calls.lost(call, error)

    def _failed(self, exception: BaseException, context: dict[str, Any], **_: Any) -> None:
        if (call := context.get(_CALL)) is None:
            return
        try:
            self.calls.failed(call, exception)
        except Exception as error:  # noqa: BLE001 - as above
            self.calls.lost(call, error)


class SyncHooks(BaseHooks):
    """The handlers of a client of boto3."""

    def before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Hold a read back, or stamp a write.

        Raises:
            UnmetError: a read was not shown what it must see.
            ConfigurationError: it cannot be.
        """
        call = self._begin(model.name, params, context)
        if call is None:
            return
        held = self._floor(call, params)
        if held is not None:
            held.hold(lambda _: self.shim.observing(held), watcher=shared_watcher(self.shim))
        for table in self.calls.unknown_tables(call, params):
            self._describe(call, table)
        self._plan(call, params, context)

    def _describe(self, call: Call, table: str) -> None:
        try:
            with own_call():
                self.calls.learn(table, self._client.describe_table(TableName=table))
        except Exception as error:  # noqa: BLE001 - what is put there is marked
            self.calls.not_followed(call, error)
