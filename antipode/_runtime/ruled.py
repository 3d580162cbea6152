"""The datastores that rules in force name: this process knows them with or without a client."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .config import config

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .datastores import Place, Rule

#: What stands for the name in the entry of an address that is no datastore of the application's.
NOT_OURS = "-"
#: The stores whose clients hold reads back.
_HOLD_READS = frozenset({"redis", "mysql", "postgresql", "mongodb", "dynamodb", "s3"})
#: Those of them whose clients ask for no promises.
_NO_PROMISES = frozenset({"s3"})
#: The stores whose clients are instrumented by rules, each with rules of its own.
_followed: dict[str, tuple[Rule, ...]] = {}
#: The stores that rules name and of which no client is installed.
_lacking: set[str] = set()
#: Of the rules by which a client was instrumented the store, the name, the places and the database.
_matched: set[tuple[str, str, tuple[Place, ...], str | None]] = set()
#: The rules whose clients reached an address, of a store.
_peers: dict[tuple[str, Place], tuple[Rule, ...]] = {}
_MOST_PEERS = 1_000


def follow(store: str, given: tuple[Rule, ...] = ()) -> None:
    """Note that clients of *store* are instrumented by the setting, and before that by *given*."""
    _followed[store] = given or _followed.get(store, ())


def unfollow(store: str) -> None:
    """Note that rules are for no client of *store* any more. Idempotent."""
    _followed.pop(store, None)
    for known in [each for each in _matched if each[0] == store]:
        _matched.discard(known)
    for peer in [each for each in _peers if each[0] == store]:
        _peers.pop(peer, None)


def rules_for(store: str) -> tuple[Rule, ...]:
    """The rules for clients of *store*, in the order in which they count."""
    if (given := _followed.get(store)) is None:
        return ()
    settings = config()
    found = (*given, *(each for each in settings.datastores if each.store == store))
    if settings.mode != "dry-run":
        return found
    return tuple(replace(each, reads_from="replica") if each.both else each for each in found)


def rules_in_force() -> Iterator[Rule]:
    """The rules by which clients of this process are instrumented."""
    for store in tuple(_followed):
        yield from rules_for(store)


def matched(rule: Rule, peer: Place | None) -> None:
    """Note that a client is instrumented by *rule*, and its server's address where it is known."""
    _matched.add((rule.store, rule.datastore, rule.places, rule.database))
    if peer is not None and len(_peers) < _MOST_PEERS:
        known = _peers.get((rule.store, peer), ())
        if rule not in known:
            _peers[rule.store, peer] = (*known, rule)


def nearest_to(
    store: str, place: Place, database: str | None, peer: Place | None
) -> tuple[Rule, bool] | None:
    """The rule for the server of a client that none is for, and whether it is for its database.

    One that is names the server otherwise than *place*. Nothing is resolved: a client of that rule
    was connected to *peer*.
    """
    there = [
        rule
        for rule in rules_for(store)
        if place in rule.places or (peer is not None and peer in rule.places)
    ]
    if peer is not None:
        there += _peers.get((store, peer), ())
    ours = [rule for rule in there if rule.datastore != NOT_OURS]
    same = [rule for rule in ours if rule.database in (None, database)]
    if same:
        return same[0], True
    return (ours[0], False) if ours else None


def lack(stores: Iterable[str]) -> None:
    """Note that no client of these *stores* is installed, whatever rules say."""
    _lacking.clear()
    _lacking.update(stores)


def lacks(store: str) -> bool:
    """Whether no client of *store* is installed, as far as was looked for."""
    return store in _lacking


def applied(store: str) -> bool:
    """Whether clients of *store* are instrumented by rules in this process."""
    return store in _followed


def unmatched_rules() -> list[Rule]:
    """The rules in force by which no client was instrumented yet."""
    ours = (each for each in rules_in_force() if each.datastore != NOT_OURS)
    found = (
        each
        for each in ours
        if (each.store, each.datastore, each.places, each.database) not in _matched
    )
    return list(dict.fromkeys(found))


def _named(datastore: str) -> list[Rule]:
    if datastore == NOT_OURS:
        return []
    return [each for each in rules_in_force() if each.datastore == datastore]


def stands_for_both(datastore: str) -> bool:
    """Whether one server stands for the primary and the replica of *datastore*."""
    return any(each.both for each in _named(datastore))


def is_ruled(datastore: str) -> bool:
    """Whether a rule names *datastore*."""
    return bool(_named(datastore))


def holds_reads(datastore: str) -> bool:
    """Whether reads of *datastore* are held back once a rule has instrumented their client."""
    return any(each.store in _HOLD_READS for each in _named(datastore))


def asks_promises(datastore: str) -> bool:
    """Whether reads of *datastore* ask for promises once a rule has instrumented their client."""
    return any(each.store in _HOLD_READS - _NO_PROMISES for each in _named(datastore))


def has_receipts(datastore: str) -> bool:
    """Whether a rule names *datastore* as one of messages that can be waited for."""
    return any(each.receipts for each in _named(datastore))


def never_waits(datastore: str) -> bool:
    """Whether rules name *datastore*, and no client that they are for can wait for its writes."""
    named = _named(datastore)
    return bool(named) and not any(each.store in _HOLD_READS or each.receipts for each in named)


def waits_for_ruled() -> bool:
    """Whether a rule names any datastore whose writes can be waited for."""
    return any(
        each.datastore != NOT_OURS and (each.store in _HOLD_READS or each.receipts)
        for each in rules_in_force()
    )


def has_primary(datastore: str) -> bool:
    """Whether a rule names a server of *datastore* that is no replica."""
    return any(each.reads_from != "replica" for each in _named(datastore))


def primary_place(datastore: str, database: str | None) -> Place | None:
    """The one address at which rules have the primary of *datastore*; None for none or several."""
    found = {
        place
        for each in _named(datastore)
        if each.reads_from != "replica" and each.database in (None, database)
        for place in each.places
    }
    return found.pop() if len(found) == 1 else None


def unapplied(datastore: str) -> str | None:
    """The store of a rule that names *datastore* and that no client here is instrumented by."""
    for each in config().datastores:
        if each.datastore == datastore and each.store not in _followed:
            return each.store
    return None
