"""What ``opentelemetry-instrument`` calls: the entry point ``antipode``.

It needs nothing of OpenTelemetry's instrumentation packages, and asks as theirs do.
"""

from __future__ import annotations

from typing import Any

from antipode._lineage.errors import ConfigurationError
from antipode._runtime.metrics import logger

from .setup import setup, teardown


class AntipodeInstrumentor:
    """:func:`antipode.setup` as an instrumentor of OpenTelemetry."""

    def instrument(self, **kwargs: Any) -> None:  # noqa: ANN401 - of any distribution
        """Call :func:`antipode.setup`. Idempotent.

        What is wrong is logged: an error would keep other instrumentations from being loaded.

        Args:
            kwargs: ``skip``, as there; what else distributions give is for others.
        """
        try:
            setup(skip=kwargs.get("skip", ()))
        except ConfigurationError as error:
            logger.warning("this process is not covered: %s", error)

    def uninstrument(self, **kwargs: Any) -> None:  # noqa: ANN401 - of any distribution
        """Call :func:`antipode.teardown`. Idempotent."""
        del kwargs
        teardown()
