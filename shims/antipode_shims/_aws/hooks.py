"""The handlers of an instrumented client of boto3, and those that aiobotocore's share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import StaleSnapshot
from antipode.shim import count, floor, shared_watcher

from .botocore import is_own_call, own_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor

    from .call import BaseCall, BaseCalls, Question
    from .shim import RegionShim

_CALL = "antipode_call"
_TOKEN = "antipode_token"  # noqa: S105 - a name in a context


class BaseHooks:
    """What both APIs share.

    Attributes:
        shim: what the client registered.
        calls: what is decided.
    """

    def __init__(self, shim: RegionShim, client: Any, calls: BaseCalls[Any, Any]) -> None:
        """Follow the calls of *client*."""
        self.shim = shim
        self.calls = calls
        self._client = client
        self._service = client.meta.service_model.service_name

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
            ("register_first", f"provide-client-params.{self._service}", self._given),
            ("register_last", "before-parameter-build", self.before),
            ("register_last", f"request-created.{self._service}", self._created),
            ("register_first", f"response-received.{self._service}", self._answered),
            ("register_first", f"after-call.{self._service}", self._replied),
            ("register_first", f"after-call-error.{self._service}", self._failed),
        )

    #: Handles ``before-parameter-build``.
    before: Callable[..., Any]

    def _given(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if "ClientRequestToken" in params:
            context[_TOKEN] = True

    def _begin(
        self, operation: str, params: dict[str, Any], context: dict[str, Any]
    ) -> BaseCall | None:
        """The call that begins; None for one that is not followed."""
        if is_own_call():
            return None
        call: BaseCall = self.calls.begin(operation, params)
        if context.get("is_presign_request"):  # Somebody else makes it, some time.
            count("presigned", self.shim.datastore)
            return None
        return call

    def _floor(self, call: BaseCall, params: dict[str, Any]) -> Floor | None:
        """What a read must see before it is sent, if it is to wait.

        Raises:
            UnmetError: as :func:`floor`.
            StaleSnapshot: the read cannot show it, such as one of a global index.
        """
        if not self.calls.reads(call, params):
            return None
        held = floor(self.shim, stale=call.stale)
        if held is None:
            return None
        if why := self.calls.snapshot(call, params):
            held.fail_snapshot(StaleSnapshot(why), lambda _: False)
            return None
        if self.shim.is_proved(held):
            held.passed()
            return None
        return held

    def _plan(self, call: BaseCall, params: dict[str, Any], context: dict[str, Any]) -> None:
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
            call.doubtful += 1

    def _answered(
        self,
        parsed_response: Any,
        exception: BaseException | None,
        context: dict[str, Any],
        **_: Any,
    ) -> None:
        if (call := context.get(_CALL)) is not None:
            self.calls.answered(call, parsed_response, exception)

    def _replied(
        self, http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any
    ) -> None:
        if (call := context.get(_CALL)) is None:
            return
        try:
            self.calls.replied(call, http_response.status_code, parsed)
        except Exception as error:  # noqa: BLE001 - it was made, and must not look failed
            self.calls.lost(call, error)

    def _failed(self, context: dict[str, Any], **_: Any) -> None:
        if (call := context.get(_CALL)) is None:
            return
        try:
            self.calls.failed(call)
        except Exception as error:  # noqa: BLE001 - as above
            self.calls.lost(call, error)

    def interrupted(self, error: BaseException, context: dict[str, Any]) -> None:
        """Take in that a request ended by *error*, of which no event says where it is no failure.

        Such as a cancelled task, or an interrupt.
        """
        if not isinstance(error, Exception):
            self._failed(context)


class SyncHooks(BaseHooks):
    """The handlers of a client of boto3."""

    def before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Hold a read back, or prepare a write.

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
        for question in self.calls.questions(call, params):
            self._ask(call, question)
        self._plan(call, params, context)

    def _ask(self, call: BaseCall, question: Question) -> None:
        try:
            with own_call():
                answer = getattr(self._client, question.method)(**question.params)
            self.calls.learn(call, question, answer)
        except Exception as error:  # noqa: BLE001 - what is not known marks the lineage
            self.calls.not_followed(call, error)


class SyncClient:
    """Mixed into the class of an instrumented client of boto3."""

    _antipode: SyncHooks

    def _make_request(self, operation_model: Any, request_dict: Any, request_context: Any) -> Any:
        plain: Any = super()
        try:
            return plain._make_request(operation_model, request_dict, request_context)  # noqa: SLF001
        except BaseException as error:
            self._antipode.interrupted(error, request_context)
            raise
