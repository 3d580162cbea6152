"""Random values, in JSON as the vectors spell them, and the texts of lineages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import encode
from tests.agent._values import lineage_of

if TYPE_CHECKING:
    import random

#: Few names, so that entries meet in their slots.
DATASTORES = ("a", "b", "c", "c-1", "@g", "größe", "~x", "A", "a.b")
KEYS = (
    "k",
    "",
    "log",
    "1.5",
    "-x",
    "~us-east.3",
    "schlüssel",
    "a0b2c3d4-0000-1111-2222-333344445555",
    "a0b2c3d4-0000-1111-2222-333344445555:7",
    "a0b2c3d4-0000-1111-2222-333344445555/x.y",
    "00112233445566778899aabbccddeeff00112233",
    "00112233445566778899AABBCCDDEEFF00112233",
    "k k\n",
    "\U0001f4ee",
)
REASONS = (
    "size",
    "promise",
    "in_doubt",
    "unreadable",
    "egress",
    "snapshot",
    "unsampled",
    "own",
    "",
)
UNKNOWN = ("x1", "0note", "9", "y.a.b", "z0.2", "z1.2~x", "q-_", "05", "0g5", "Xk")
OPAQUE = ("x", "5", "", "v-1", "größe")
#: The virtual hour in which every script of level 4 starts, and its second.
HOUR = 500_000
NOW_S = HOUR * 3600
IDS = tuple(f"{nth:032x}" for nth in (0, 1, 0xA0B2C3D4, 2**128 - 1))
ALPHABET = "abkKuUrRipoz.~-_0159zAZ"
#: An hour that is past on any clock: agents read texts by their own, one later than the other.
PAST_HOUR = 400_000
#: Out of how many values one is unusual.
SELDOM = 12


class Values:
    """Random values of one sequence.

    Args:
        dice: where they come from.
        hour: the present one, or what is taken for it.
    """

    def __init__(self, dice: random.Random, hour: int = HOUR) -> None:
        self.dice = dice
        self._now_s = hour * 3600
        self.datastores = dice.sample(DATASTORES, dice.randint(1, 4))
        self.keys = dice.sample(KEYS, dice.randint(1, 4))
        self._hours = [
            0,
            hour,
            hour - 1,
            hour - dice.randint(2, 50),
            dice.choice([1, 2, 36**5 - 1]),
        ]

    def chance(self, one_in: int) -> bool:
        """Whether something happens, once in so many times."""
        return self.dice.randrange(one_in) == 0

    def datastore(self) -> str:
        """Mostly one of few."""
        return self.dice.choice(DATASTORES if self.chance(SELDOM) else self.datastores)

    def version(self) -> str:
        """Digits."""
        if self.chance(SELDOM):
            return str(self.dice.choice([2**64 - 1, 2**63, 36**5, 0]))
        return str(self.dice.randint(0, 9))

    def write(self, *, plain: bool = False) -> dict[str, Any]:
        """A write; a *plain* one has a version of a log."""
        found: dict[str, Any] = {"datastore": self.datastore(), "key": self.dice.choice(self.keys)}
        if not plain and self.chance(6):
            found["opaque"] = self.dice.choice(OPAQUE)
        else:
            found["version"] = self.version()
        if hour := self.dice.choice(self._hours):
            found["minted_h"] = hour
        if self.chance(3):
            found["covering"] = True
        return found

    def promise(self) -> dict[str, Any]:
        """A promise that expires soon, or did so long ago."""
        after_s = self.dice.choice([-(10**6), -5400, -3700, -3600, -1, 0, 1, 60, 600, 10**6, 10**8])
        return {
            "datastore": self.datastore(),
            "id": self.dice.choice(IDS),
            "expires_s": self._now_s + after_s,
        }

    def mark(self) -> list[str]:
        """Subject and reason."""
        subject = "" if self.chance(4) else self.datastore()
        return [subject, self.dice.choice(REASONS)]

    def lineage(self, most: int = 5) -> dict[str, Any]:
        """A lineage."""
        found: dict[str, Any] = {
            "writes": [self.write() for _ in range(self.dice.randint(0, most))]
        }
        if self.chance(3):
            found["incomplete"] = [self.mark() for _ in range(self.dice.randint(1, 3))]
        if self.chance(3):
            found["promises"] = [self.promise() for _ in range(self.dice.randint(1, 3))]
        if self.chance(6):
            found["open_branches"] = self.version()
        if self.chance(6):
            found["unknown"] = self.dice.sample(UNKNOWN, self.dice.randint(1, 2))
        return {name: value for name, value in found.items() if value}

    def text(self, most: int = 5) -> str:
        """A text that decodes, canonical or not."""
        text = encode(lineage_of(self.lineage(most)))
        if self.chance(3):
            head, *items = text.split("~")
            self.dice.shuffle(items)
            if items and self.chance(2):
                items.append(self.dice.choice(items))
            if not any(item.startswith("z") for item in items):
                text = "~".join([head, *items])
        return text

    def any_text(self) -> str:
        """A text that may be no lineage at all."""
        if self.chance(3):
            return self.text()
        if self.chance(8):
            return self.dice.choice(
                ["", "1", "0", "2~x~~", "1~", "~", "10", "1a~ka.0-5.k", "é", "1~h"]
            )
        text = self.text()
        for _ in range(self.dice.randint(1, 3)):
            at = self.dice.randrange(len(text) + 1)
            text = (
                text[:at]
                + self.dice.choice(ALPHABET) * self.dice.randint(0, 2)
                + text[at + self.dice.randint(0, 2) :]
            )
        return text
