"""Celery's signals, and the order in which they reach their receivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.integrations._method import not_installed

if TYPE_CHECKING:
    from collections.abc import Callable

    Receiver = Callable[..., None]


def signals() -> Any:
    """Celery's signals.

    Raises:
        ConfigurationError: Celery is not installed.
    """
    try:
        from celery import signals as found
    except ImportError as error:
        raise not_installed("Celery", "celery") from error
    return found


def connect(signal: Any, receiver: Receiver, *, first: bool = False) -> None:
    """Connect *receiver* to *signal*, before or after all others, however late they come."""
    signal.connect(receiver, weak=False)
    _order(signal, receiver, first=first)
    if first or "connect" in vars(signal):
        return
    plain = signal.connect

    def connect_before(*args: Any, **kwargs: Any) -> Any:
        found = plain(*args, **kwargs)
        if args and callable(args[0]):
            _order(signal, receiver, first=False)
            return found

        def decorate(function: Any) -> Any:
            connected = found(function)
            _order(signal, receiver, first=False)
            return connected

        return decorate

    vars(signal)["connect"] = connect_before


def _order(signal: Any, receiver: Receiver, *, first: bool) -> None:
    with signal.lock:
        ours = [entry for entry in signal.receivers if entry[1] is receiver]
        others = [entry for entry in signal.receivers if entry[1] is not receiver]
        # The list itself is held by the tracers of tasks.
        signal.receivers[:] = ours + others if first else others + ours


def disconnect(signal: Any, *receivers: Receiver) -> None:
    """Undo :func:`connect`."""
    vars(signal).pop("connect", None)
    for receiver in receivers:
        signal.disconnect(receiver)
