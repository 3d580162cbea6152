"""What travels with calls between services: nothing at all, or OpenTelemetry and a lineage."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping


class Tracing(Protocol):
    """What an RPC layer asks of context propagation."""

    def root(self) -> AbstractContextManager[object]:
        """A block that runs one request from its beginning."""
        ...

    def request(self, headers: MutableMapping[str, str]) -> None:
        """Put the context into the headers of a call."""
        ...

    def serving(self, headers: dict[str, list[str]]) -> AbstractContextManager[None]:
        """A block that serves a call with these headers, by lower-case names."""
        ...

    def response(self, headers: MutableMapping[str, str]) -> None:
        """Put what the caller must learn into the headers of a response."""
        ...

    def received(self, headers: MutableMapping[str, str], service: str) -> None:
        """Take what the response of *service* says."""
        ...


class NoTracing:
    """The baseline: no scope, no header, not one byte."""

    @contextmanager
    def root(self) -> Iterator[None]:
        """Run the block as it is."""
        yield

    def request(self, headers: MutableMapping[str, str]) -> None:
        """Add nothing."""

    @contextmanager
    def serving(self, headers: dict[str, list[str]]) -> Iterator[None]:  # noqa: ARG002
        """Run the block as it is."""
        yield

    def response(self, headers: MutableMapping[str, str]) -> None:
        """Add nothing."""

    def received(self, headers: MutableMapping[str, str], service: str) -> None:
        """Take nothing."""


class LineageTracing:
    """OpenTelemetry's propagators with the lineage in baggage, and responses that carry it back.

    This is all that a service's RPC layer needs for the library.
    """

    def __init__(self) -> None:
        """Instrument this process: the baseline's never load what is imported here."""
        from opentelemetry import context, propagate

        import antipode

        self._antipode, self._context, self._propagate = antipode, context, propagate
        antipode.instrument()

    def root(self) -> AbstractContextManager[object]:
        """Start a new lineage."""
        return self._antipode.scope()

    def request(self, headers: MutableMapping[str, str]) -> None:
        """Inject the context; the baggage header carries the lineage of this moment."""
        self._propagate.inject(headers)

    @contextmanager
    def serving(self, headers: dict[str, list[str]]) -> Iterator[None]:
        """Extract the context: the call gets a scope."""
        token = self._context.attach(self._propagate.extract(headers))
        try:
            yield
        finally:
            self._context.detach(token)

    def response(self, headers: MutableMapping[str, str]) -> None:
        """Send the lineage back, which baggage does not do."""
        self._antipode.propagation.inject_response(headers)

    def received(self, headers: MutableMapping[str, str], service: str) -> None:
        """Merge the callee's lineage into the caller's."""
        self._antipode.propagation.extract_response(headers, service=service)
