"""Random scripts of level 4.

Starts lie on a grid of quarters of a second, events a little after it, and deadlines after those:
so pauses, which are random, do not decide what is seen before what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import encode
from tests.agent._values import lineage_of

from ._values import HOUR, IDS, NOW_S

if TYPE_CHECKING:
    from ._values import Values

_STATUSES = ("visible", "superseded", "not_yet", "lost", "unknown_log", "undecidable")
_FLAGS = ("waitable", "floors", "pinned", "push", "blocks", "promises", "unique_logs", "fences")
_GRID_S = 0.25
_EVENT_S, _DEADLINE_S, _CANCEL_S = 0.09, 0.17, 0.21


def _start(values: Values, most: int = 8) -> float:
    return values.dice.randint(0, most) * _GRID_S


class _Script:
    """One script while it is made; it has few dependencies, which its stores know."""

    def __init__(self, values: Values) -> None:
        self.values, dice = values, values.dice
        self.datastores = dice.sample(["a", "b", "c"], dice.randint(1, 2))
        self.keys = ("k", "log")[: dice.randint(1, 2)]
        self.writes = [self._write() for _ in range(dice.randint(1, 4))]
        self.promises = [self._promise() for _ in range(dice.choice([0, 0, 1, 2]))]

    def _datastore(self) -> str:
        return "d" if self.values.chance(15) else self.values.dice.choice(self.datastores)

    def _write(self) -> dict[str, Any]:
        dice = self.values.dice
        found: dict[str, Any] = {
            "datastore": self._datastore(),
            "key": dice.choice(self.keys),
            "version": str(dice.randint(1, 9)),
        }
        if hour := dice.choice([HOUR, HOUR, HOUR, 0, HOUR - 24, HOUR - 48]):
            found["minted_h"] = hour
        if self.values.chance(4):
            found["covering"] = True
        if self.values.chance(12):
            found["opaque"] = found.pop("version")
        return found

    def _promise(self) -> dict[str, Any]:
        dice = self.values.dice
        after_s = dice.choice([60, 60, 2, -1, -3599, -3602, -4000, -(10**6)])
        datastore, id_ = self._datastore(), dice.choice(IDS)
        return {"datastore": datastore, "id": id_, "expires_s": NOW_S + after_s}

    def lineage(self) -> dict[str, Any]:
        """Some of what there is."""
        dice = self.values.dice
        found: dict[str, Any] = {
            "writes": dice.sample(self.writes, dice.randint(0, len(self.writes)))
        }
        if self.promises and self.values.chance(2):
            found["promises"] = dice.sample(self.promises, 1)
        if self.values.chance(6):
            reasons = ["size", "unsampled", "in_doubt", "promise"]
            subject = "" if self.values.chance(4) else self._datastore()
            found["incomplete"] = [[subject, dice.choice(reasons)]]
        if self.values.chance(15):
            found["unknown"] = [dice.choice(["x1", "0note"])]
        if self.values.chance(10):
            found["open_branches"] = "2"
        return {name: value for name, value in found.items() if value}

    def store(self, datastore: str) -> dict[str, Any]:
        """A store, and what happens to it."""
        values = self.values
        found: dict[str, Any] = {"datastore": datastore}
        if values.chance(3):
            found["reads_from"] = "replica"
        odds = {"waitable": 10, "pinned": 4, "push": 4, "blocks": 6, "unique_logs": 8, "fences": 3}
        for flag in _FLAGS:
            if values.chance(odds.get(flag, 2)):
                found[flag] = flag != "waitable"
        if found.get("fences") and values.chance(3):
            found["fence_s"] = values.dice.choice([0.05, 0.3, 2.0])
        if events := self.events(datastore, fences=bool(found.get("fences"))):
            found["script"] = events
        return found

    def events(self, datastore: str, *, fences: bool) -> list[dict[str, Any]]:
        """What happens to a store, in order."""
        dice, values = self.values.dice, self.values
        found = []
        for _ in range(dice.choice([0, 1, 2, 2, 3, 4])):
            at_s = 0 if values.chance(3) else _start(values) + _EVENT_S
            found.append({"at_s": at_s, **self._event(datastore, at_s, fences=fences)})
        return sorted(found, key=lambda event: event["at_s"])

    def _event(self, datastore: str, at_s: float, *, fences: bool) -> dict[str, Any]:
        dice, values = self.values.dice, self.values
        mine = [write for write in self.writes if write["datastore"] == datastore]
        promised = [each for each in self.promises if each["datastore"] == datastore]
        if fences and values.chance(3):
            key, version = dice.choice(self.keys), str(dice.randint(1, 9))
            position = {"datastore": datastore, "key": key, "version": version}
            return {"primary": {**position, "minted_h": HOUR, "covering": True}}
        if promised and values.chance(2):
            record = dice.choice(["fulfilled", "fulfilled", "abandoned", "none"])
            return {"promise": dice.choice(promised), "record": record}
        if mine and values.chance(4):
            return {"write": dice.choice(mine), "status": dice.choice(_STATUSES)}
        if values.chance(8):
            return self._fault(at_s, fences=fences)
        if values.chance(10):
            return {"eta_s": dice.choice([0.5, 2])}
        return {"log": dice.choice(self.keys), "position": str(dice.randint(1, 9))}

    def _fault(self, at_s: float, *, fences: bool) -> dict[str, Any]:
        dice = self.values.dice
        faults: list[dict[str, Any]] = [
            {"server": f"server-{dice.randint(1, 3)}"},
            {"down_until_s": at_s + dice.randint(1, 4) * _GRID_S},
            {"down": True},
            {"broken": True},
            {"records_server": f"server-{dice.randint(1, 3)}"},
        ]
        return dice.choice([*faults, {"primary_down": True}] if fences else faults)

    def barrier(self, *, scoped: bool) -> dict[str, Any]:
        """A barrier or a check."""
        dice, values = self.values.dice, self.values
        lineage: dict[str, Any] | str | None = self.lineage()
        if values.chance(3 if scoped else 20):
            lineage = None
        elif values.chance(8):
            lineage = encode(lineage_of(self.lineage()))
        found: dict[str, Any] = {"at_s": _start(values), "lineage": lineage}
        found["timeout_s"] = dice.randint(0, 8) * _GRID_S + _DEADLINE_S
        if values.chance(6):
            found.update({"check": True, "timeout_s": 1})
            if values.chance(4):
                found["refresh"] = False
        elif values.chance(12):
            found["cancel_at_s"] = found["at_s"] + dice.randint(0, 4) * _GRID_S + _CANCEL_S
        if options := self._options(scoped=scoped, checks="check" in found):
            found["options"] = options
        return found

    def _options(self, *, scoped: bool, checks: bool) -> dict[str, Any]:
        dice, values = self.values.dice, self.values
        found: dict[str, Any] = {}
        for name in ("only", "exclude"):
            if values.chance(6):
                found[name] = dice.sample(["a", "b", "c", "d"], dice.randint(0, 2))
        if not checks and values.chance(3 if scoped else 20):
            found["at"] = dice.choice(["read", "read", "now"])
        if not checks and values.chance(4):
            found["on_unmet"] = dice.choice(["return", "raise"])
        for name in ("on_unknown", "on_incomplete"):
            if values.chance(5):
                found[name] = dice.choice(["report", "raise"])
        if not checks and values.chance(20):
            found["mode"] = dice.choice(["off", "enforce"])
        return found

    def read(self, datastores: list[str]) -> dict[str, Any]:
        """A read of a store's client."""
        dice, values = self.values.dice, self.values
        datastore = dice.choice(datastores)
        found: dict[str, Any] = {"at_s": _start(values, 12), "datastore": datastore}
        if values.chance(2):
            found["connection"] = self.events(datastore, fences=False)
        if values.chance(4):
            found["watched"] = True
        if values.chance(5):
            found["wrote"] = [{**self._write(), "minted_h": HOUR}]
        if values.chance(10):
            found["barriers"] = "explicit"
        return found

    def settings(self) -> dict[str, Any]:
        """Few, mostly none."""
        dice, values = self.values.dice, self.values
        found: dict[str, Any] = {}
        if values.chance(3):
            found["barriers"] = "auto"
            if values.chance(2):
                found["auto_timeout_s"] = dice.choice([0, 0.4, 1, 3])
            if values.chance(3):
                found["on_stale"] = "raise"
        odds = {"on_unknown": 8, "on_incomplete": 8, "on_unscoped": 12}
        for name, odd in odds.items():
            if values.chance(odd):
                found[name] = dice.choice(["report", "raise"])
        if values.chance(12):
            found["max_timeout_s"] = 0.67
        if values.chance(8):
            found["horizon_s"] = dice.choice([3600, 86400, 90000])
        return found


def script(values: Values) -> dict[str, Any]:
    """One script."""
    made, dice = _Script(values), values.dice
    datastores = [one for one in made.datastores if not values.chance(12)] or ["a"]
    if values.chance(12):
        datastores.append(dice.choice(datastores))
    found: dict[str, Any] = {"stores": [made.store(one) for one in datastores]}
    if settings := made.settings():
        found["settings"] = settings
    scoped = not values.chance(3)
    if scoped:
        found["scope"] = made.lineage()
        if made.promises and values.chance(5):
            found["fulfils"] = dice.choice(made.promises)
    found["barriers"] = [made.barrier(scoped=scoped) for _ in range(dice.choice([0, 1, 1, 2, 3]))]
    if scoped and not values.chance(2):
        found["reads"] = [made.read(datastores) for _ in range(dice.randint(1, 3))]
    return found
