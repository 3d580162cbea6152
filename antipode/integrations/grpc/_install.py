"""Putting the interceptors in place: for one channel, and for all of a process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode._runtime import switch
from antipode._runtime.switch import switchable

from . import _channel
from ._aio_client import AioInterceptor, interceptors
from ._aio_server import AioServerInterceptor
from ._calling import Channel, may_retry
from ._library import grpc
from ._server import ServerInterceptor

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]

#: On an instrumented channel.
_KNOWN = "_antipode_known"
_AIO_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
#: What :func:`instrument` has put in place: where, by what name, ours, and what was there.
_placed: list[tuple[Any, str, Make, Make]] = []


@switchable
def instrument_channel(channel: Any, *, target: str | None = None, retries: bool = True) -> Any:
    """Make the calls of *channel* carry the lineage, and take in what their answers bring.

    It works beneath all interceptors, whoever put them in place. Stubs must be made after it (for
    ``grpc.aio`` they may be there already). Idempotent; :func:`uninstrument_channel` undoes it.

    Args:
        channel: a channel of ``grpc`` or ``grpc.aio``.
        target: where it leads, for ``egress_hosts`` and messages; channels of ``grpc.aio`` do not
            know it themselves.
        retries: whether the channel may have a retry policy. Without one, a call for which no
            connection could be made was certainly not sent; with one, an attempt before it may
            have been.

    Returns:
        *channel*.

    Raises:
        ConfigurationError: it is no channel of gRPC's own.
    """
    if not isinstance(channel, (grpc.Channel, grpc.aio.Channel)):
        msg = f"{channel!r} is no channel of grpc or grpc.aio"
        raise ConfigurationError(msg)
    innermost = _innermost(channel)
    if hasattr(innermost, _KNOWN):
        return channel
    found = getattr(innermost, "_target", "") if target is None else target
    known = Channel(found if isinstance(found, str) else "", retries=retries)
    if isinstance(innermost, grpc.aio.Channel):
        for held, ours in zip(_lists(innermost), interceptors(known), strict=True):
            if not any(isinstance(each, AioInterceptor) for each in held):
                held.append(ours)
    else:
        _channel.instrument(innermost, known)
    setattr(innermost, _KNOWN, known)
    return channel


def uninstrument_channel(channel: Any) -> Any:
    """Undo :func:`instrument_channel`, for stubs that are made from now on. Idempotent."""
    innermost = _innermost(channel)
    if not hasattr(innermost, _KNOWN):
        return channel
    if isinstance(innermost, grpc.aio.Channel):
        for held in _lists(innermost):
            held[:] = [each for each in held if not isinstance(each, AioInterceptor)]
    else:
        _channel.uninstrument(innermost)
    delattr(innermost, _KNOWN)
    return channel


def _innermost(channel: Any) -> Any:
    """The channel beneath all that intercepts it, where every attempt is a call of its own."""
    while isinstance(inner := getattr(channel, "_channel", None), grpc.Channel):
        channel = inner
    return channel


def _lists(channel: Any) -> list[list[Any]]:
    """The interceptors of an asyncio channel, by kind."""
    try:
        return [getattr(channel, f"_{kind}_interceptors") for kind in _AIO_KINDS]
    except AttributeError:
        msg = "this is no channel of grpc.aio: pass aio_client_interceptors() where it is made"
        raise ConfigurationError(msg) from None


def server_interceptor() -> ServerInterceptor:
    """The interceptor for ``grpc.server``. Put it first: what it is inside of is not seen."""
    return ServerInterceptor()


def aio_server_interceptor() -> AioServerInterceptor:
    """The interceptor for ``grpc.aio.server``. Put it first: what it is inside of is not seen."""
    return AioServerInterceptor()


def aio_client_interceptors(*, target: str = "", retries: bool = True) -> list[Any]:
    """The interceptors for a channel of ``grpc.aio``. Put them last: each attempt counts.

    Args:
        target: where the channel leads; with ``egress_hosts``, nothing goes where it is not given.
        retries: as for :func:`instrument_channel`.

    Returns:
        None at all where the library is disabled.
    """
    return [] if switch.disabled else interceptors(Channel(target, retries=retries))


@switchable
def instrument() -> None:
    """Intercept the servers and channels that this process makes from now on. Idempotent.

    It wraps ``grpc.server``, ``grpc.insecure_channel``, ``grpc.secure_channel`` and those of
    ``grpc.aio``, in any order with OpenTelemetry's instrumentation.
    """
    if _placed:
        return
    for module, channels in ((grpc, _channel_maker), (grpc.aio, _aio_channel_maker)):
        _place(module, "server", _server_maker)
        _place(module, "insecure_channel", channels)
        _place(module, "secure_channel", channels)


def uninstrument() -> None:
    """Undo :func:`instrument`, for what is made from now on. Idempotent.

    Where others have wrapped these functions since, ours stay there and do nothing.
    """
    for module, name, ours, original in _placed:
        if getattr(module, name) is ours:
            setattr(module, name, original)
    _placed.clear()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return bool(_placed)


def _place(module: Any, name: str, make: Callable[[Any, str, Make], Make]) -> None:
    original = getattr(module, name)
    ours = functools.wraps(original)(make(module, name, original))
    setattr(module, name, ours)
    _placed.append((module, name, ours, original))


def _server_maker(module: Any, _: str, original: Make) -> Make:
    position = 2  # Of its interceptors, in both.

    def server(*args: Any, **kwargs: Any) -> Any:
        if not _placed:
            return original(*args, **kwargs)
        kind = ServerInterceptor if module is grpc else AioServerInterceptor
        args, held = _taken(args, kwargs, position)
        if not any(isinstance(each, kind) for each in held):
            held = (kind(), *held)
        return original(*args, interceptors=held, **kwargs)

    return server


def _channel_maker(_: Any, name: str, original: Make) -> Make:
    def channel(target: str, *args: Any, **kwargs: Any) -> Any:
        made = original(target, *args, **kwargs)
        if not _placed:
            return made
        retries = _retries(target, name, args, kwargs)
        return instrument_channel(made, target=target, retries=retries)

    return channel


def _aio_channel_maker(_: Any, name: str, original: Make) -> Make:
    position = 2 if name == "insecure_channel" else 3

    def channel(target: str, *args: Any, **kwargs: Any) -> Any:
        if not _placed:
            return original(target, *args, **kwargs)
        retries = _retries(target, name, args, kwargs)
        rest, held = _taken(args, kwargs, position)
        if not any(isinstance(each, AioInterceptor) for each in held):
            held = (*held, *aio_client_interceptors(target=target, retries=retries))
        return original(target, *rest, interceptors=held, **kwargs)

    return channel


def _retries(target: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the channel that these arguments make may send calls again on its own."""
    position = 0 if name == "insecure_channel" else 1
    options = kwargs.get("options", args[position] if len(args) > position else None)
    return may_retry(target, options)


def _taken(
    args: tuple[Any, ...], kwargs: dict[str, Any], position: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """*args* up to the interceptors, by place or by name, and these; *kwargs* loses them."""
    held = kwargs.pop("interceptors", None)
    if len(args) > position:
        held, behind = args[position], args[position + 1 :]
        names = ("options", "maximum_concurrent_rpcs", "compression", "xds")
        kwargs.update(zip(names, behind, strict=False))
        args = args[:position]
    return args, tuple(held or ())
