"""Outgoing calls: what is known of their channel, and what their status says of their outcome."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from antipode._runtime.metrics import logger
from antipode.integrations._outgoing import Outgoing

from ._library import grpc
from ._metadata import answers, may_have_lost_answer, sending
from ._serving import service_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._metadata import Entries, Entry

_OK = grpc.StatusCode.OK
#: Codes that gRPC itself never makes up: with one of them the service has answered.
_ANSWERED = frozenset(
    {
        _OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.DATA_LOSS,
    }
)
#: Codes that say that nothing was executed: gateways make them of the statuses 401, 403 and 404.
_NOT_EXECUTED = frozenset(
    {
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
#: How gRPC's messages begin where it found no connection to send a call on.
_UNSENT = (
    "failed to connect to all addresses",
    "errors resolving ",
    "DNS resolution failed",
    "empty address list",
)
_LOCAL = frozenset({"unix", "unix-abstract", "vsock"})
_SCHEMES = frozenset({"dns", "xds", "passthrough"})
_MOST_METHODS = 1_000
_ONE = 1


class Channel:
    """What the calls of one channel have in common."""

    def __init__(self, target: str, *, retries: bool = True) -> None:
        """Remember the *target*, and whether the channel may have a policy of *retries*."""
        self.target = target
        self.hosts = hosts_of(target)
        #: A call that could not be sent may then be the attempt after one that was.
        self.retries = retries
        self._methods: dict[str | bytes, Method] = {}

    def method(self, name: str | bytes) -> Method:
        """What the calls of the method *name* have in common."""
        found = self._methods.get(name)
        if found is None:
            if len(self._methods) >= _MOST_METHODS:
                self._methods.clear()
            found = self._methods[name] = Method(self, name)
        return found


class Method:
    """What the calls of one method have in common."""

    __slots__ = ("_channel", "_fixed", "_path", "_peer", "_service")

    def __init__(self, channel: Channel, name: str | bytes) -> None:
        self._channel = channel
        self._service = service_of(name)
        self._peer = f"{channel.target} {self._service}"
        self._path = name if isinstance(name, str) else name.decode("latin-1")
        self._fixed = len(name) + len(channel.target)

    def begin(self, metadata: Iterable[Entry] | None) -> tuple[Outgoing, Entries]:
        """Begin a call in the current scope: the call, and the metadata to send.

        Args:
            metadata: what it is to be sent with.
        """
        hosts = self._channel.hosts
        call = Outgoing(self._service, hosts[0], peer=self._peer, path=self._path)
        if len(hosts) > _ONE and call.text:
            # To several addresses: any of them may get it, so each must be one that may.
            for host in hosts[1:]:
                other = Outgoing(self._service, host, peer=self._peer, path=self._path)
                call = call if other.text else other
        return call, sending(call, metadata, self._fixed)

    def ended(self, call: Outgoing, code: Any, details: str | None, trailing: Any) -> None:
        """Judge *call* by its status. Never raises."""
        try:
            if texts := answers(trailing):
                for text in texts:
                    call.answered(text)
            elif may_have_lost_answer(trailing):
                call.failed()
            elif code is _OK or code in _ANSWERED:
                call.answered(None, success=code is _OK)
            elif self._channel.retries or not _not_executed(code, details):
                call.failed()
        except Exception:  # noqa: BLE001 - a hook never fails the call
            logger.warning("the outcome of a gRPC call cannot be read", exc_info=True)
            call.failed()

    def raised(self, call: Outgoing, error: Any) -> None:
        """Judge *call* by the error that it raised. Never raises."""
        code = details = trailing = None
        with suppress(Exception):  # Errors of interceptors may be of any kind.
            code, details = error.code(), error.details()
            trailing = error.trailing_metadata()
        if code is grpc.StatusCode.INTERNAL and not trailing and _local(error):
            return
        self.ended(call, code, details, trailing)


def _not_executed(code: Any, details: str | None) -> bool:
    """Whether nobody executed a call: it was refused, or no connection could be made for it."""
    return code in _NOT_EXECUTED or (
        code is grpc.StatusCode.UNAVAILABLE and (details or "").startswith(_UNSENT)
    )


def _local(error: Any) -> bool:
    """Whether gRPC refused a call before sending it, as one that cannot be serialised."""
    with suppress(Exception):
        return not error.debug_error_string()
    return False


def may_retry(target: str, options: Sequence[tuple[str, Any]] | None) -> bool:
    """Whether a channel with these *options* may send a call again by a policy of its own."""
    given = dict(options or ())
    if not given.get("grpc.enable_retries", 1):
        return False
    if target.startswith(("xds:", "google-c2p:")):
        return True
    if not given.get("grpc.service_config_disable_resolution", 1):
        return True
    text = given.get("grpc.service_config")
    if not text:
        return False
    with suppress(ValueError, TypeError):
        return "Policy" in json.dumps(json.loads(text).get("methodConfig"))
    return True


def hosts_of(target: str) -> tuple[str, ...]:
    """The hosts that *target* names, with their ports; ``localhost`` for this machine's sockets."""
    scheme, colon, rest = target.partition(":")
    if scheme in _LOCAL:
        return ("localhost",)
    if scheme in {"ipv4", "ipv6"}:
        return tuple(rest.lstrip("/").split(","))
    if colon and rest.startswith("//"):  # scheme://authority/endpoint
        return (rest[2:].partition("/")[2],)
    if scheme in _SCHEMES and not rest.isdigit():
        return (rest,)
    return (target,)
