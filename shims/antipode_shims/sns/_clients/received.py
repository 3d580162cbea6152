"""What instrumented clients of this process received, and hid of it: copies have lost that."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from antipode.shim import unreadable
from antipode_shims.sns._format import envelope_in, lineage_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage

#: Messages of which the label is remembered: more are not handled at once.
MOST_REMEMBERED = 4_096
_UNKNOWN = "no client here received it, so that its attribute may be hidden: ask for it by name"


class Labels:
    """The labels of messages, by their ids. Thread-safe."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, str | None] = OrderedDict()

    def note(self, message: Mapping[str, Any], text: str | None) -> None:
        """Remember *text*, the label of *message*; None for one without."""
        with self._lock:
            self._texts[str(message.get("MessageId"))] = text
            if len(self._texts) > MOST_REMEMBERED:
                self._texts.popitem(last=False)

    def of(self, message: Mapping[str, Any], datastore: str) -> Lineage | None:
        """What *message*, or a copy of one, depends on; None where it has no label.

        One that was delivered raw, without the attribute and to nobody here, may have had it:
        another process received it, or a client that did not ask.
        """
        text, named = text_of(message), str(message.get("MessageId"))
        with self._lock:
            known = named in self._texts
            if text is None:
                text = self._texts.get(named)
        if text is not None:
            return lineage_of(text, datastore)
        raw = "Body" in message and envelope_in(message["Body"]) is None
        return unreadable(datastore, _UNKNOWN) if raw and not known else None


LABELS = Labels()
