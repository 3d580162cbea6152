"""Lineages in responses: headers of HTTP, trailing metadata of gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.lineage import Lineage, without_notes
from antipode._request.context import scope_in
from antipode._request.lineage_text import readable
from antipode._runtime import observers

from .headers import RESPONSE_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from opentelemetry.context import Context


def inject_response(carrier: MutableMapping[str, str]) -> None:
    """Put the current lineage into response headers or gRPC trailing metadata.

    Baggage travels with requests only; this carries the writes of a callee back to its caller
    (paper figure 4, step 3): what the request added to the lineage that it came with. Call it
    last: writes after it are counted as ``after_response_write``. Without a scope it does nothing.
    """
    held = scope_in()
    if held is not None:
        carrier[RESPONSE_HEADER] = held.answer()


def extract_response(
    carrier: Mapping[str, str], *, service: str = "", context: Context | None = None
) -> Lineage:
    """Merge the lineage of a response into the caller's scope, while that is open.

    Args:
        carrier: the response's headers or trailing metadata; names are matched in any case.
        service: who answered; the subject of ``incomplete`` when its lineage is unreadable.
        context: whose scope; default the current context's.

    Returns:
        The lineage of the response; empty when it carries none.
    """
    text = next((v for k, v in carrier.items() if k.lower() == RESPONSE_HEADER), None)
    if text is None:
        return Lineage()
    lineage = readable(service, text)
    held = scope_in(context)
    if held is not None and held.open:
        held.merge(lineage)
    return lineage if observers.noting is None else without_notes(lineage)
