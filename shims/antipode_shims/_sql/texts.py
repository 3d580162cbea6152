"""How much of a statement's text is read, and how much is kept: never its values. Pure."""

from __future__ import annotations

from typing import Final, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

#: Characters of the longest text that is read. What a longer one does is not known. A slice that
#: begins there says whether a text is longer: all calls of clients ask, and a slice is no call.
LONGEST: Final = 1 << 16
#: What is read of a longer one all the same: it may say more than that the text does anything.
HEAD: Final = 1000
#: Characters of the longest text that is kept.
LONGEST_KEPT: Final = 1 << 11
_MOST_KEPT: Final = 512


def text_of(query: bytes) -> str:
    """The text of a statement; of one that is too long, another that is as well."""
    return query.decode() if len(query) <= LONGEST else query[: LONGEST + 1].decode("latin-1")


class Kept(dict[KeyT, ValueT]):
    """What was found out of texts, by these without their values: a few, and then anew."""

    def keep(self, key: KeyT, value: ValueT) -> ValueT:
        """The *value*, which is found by *key* from now on."""
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[key] = value
        return value
