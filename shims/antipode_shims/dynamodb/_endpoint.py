"""The library's own clients: one for each region that is asked, and the looks that they make."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, ClassVar

from antipode.shim import Unreachable
from antipode_shims._aws.botocore import client_error, code_of, passes
from antipode_shims._aws.homes import Homes
from antipode_shims._aws.regions import Regions

from ._format import STAMP, stamp_of
from ._look import Look, Question, Shown, look, look_for
from ._position import Item, item_of
from ._promises import WRITES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from antipode import Promise, WriteId
    from antipode_shims._aws.botocore import Settings

    from ._look import Answer

#: How many items one request reads, and how often what was left out is asked for again.
MOST_KEYS, MOST_ROUNDS = 100, 5
#: The types of attributes whose values have no order.
_SETS = frozenset({"SS", "NS", "BS"})
_MISSING = "ResourceNotFoundException"


class DynamoDBRegions(Regions):
    """The clients by which regions are polled. Thread-safe."""

    service: ClassVar[str] = "dynamodb"

    def __init__(
        self, settings: Settings, others: Mapping[str, str], *, promise_table: str
    ) -> None:
        """As `Regions`; records of promises are in *promise_table*."""
        super().__init__(settings, others)
        self.homes: Homes[Shown] = Homes()
        self._promise_table = promise_table

    def look(self, writes: Collection[WriteId]) -> Look:
        """As `Regions.look`."""
        return look(writes, self.here, self.homes)

    def look_for(self, promises: Collection[Promise]) -> Look:
        """As `Regions.look_for`."""
        return look_for(promises, self._promise_table, self.here, self.homes)

    def read(self, client: Any, question: Question) -> Answer:
        """As `Regions.read`."""
        if not question.items:
            _ask_for_an_answer(client)
        wanted = WRITES if question.records else STAMP
        if question.whole or len(question.items) == 1:
            whole = question.whole
            return {each: _read_one(client, each, wanted, whole=whole) for each in question.items}
        found: dict[Item, Shown | None] = {}
        for start in range(0, len(question.items), MOST_KEYS):
            some = question.items[start : start + MOST_KEYS]
            try:
                found.update(_read_some(client, some, wanted))
            except client_error() as error:
                if not _says_missing(error):
                    raise
                found.update({each: _read_one(client, each, wanted) for each in some})
        return found


def _ask_for_an_answer(client: Any) -> None:
    """Ask for something that costs no read units; that it is not allowed is an answer, too."""
    try:
        client.list_tables(Limit=1)
    except client_error() as error:
        if passes(error):
            raise


def _read_one(client: Any, item: Item, wanted: str, *, whole: bool = False) -> Shown | None:
    given: dict[str, Any] = {"TableName": item.table, "Key": item.wire, "ConsistentRead": True}
    if not whole:
        given |= {"ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": wanted}}
    try:
        found = client.get_item(**given).get("Item")
    except client_error() as error:
        if _says_missing(error):
            return None
        raise
    return _shown(found, wanted, whole=whole)


def _read_some(client: Any, items: Sequence[Item], wanted: str) -> dict[Item, Shown | None]:
    """What one request, or a few, shows of at most a hundred items."""
    asked: dict[str, Any] = {}
    for item in items:
        names = {f"#k{at}": name for at, (name, _, _) in enumerate(item.key)}
        table = asked.setdefault(
            item.table,
            {
                "Keys": [],
                "ConsistentRead": True,
                "ProjectionExpression": ",".join(("#a", *names)),
                "ExpressionAttributeNames": {"#a": wanted, **names},
            },
        )
        table["Keys"].append(item.wire)
    found: dict[Item, Shown | None] = dict.fromkeys(items, Shown(present=False))
    names_of = {item.table: [name for name, _, _ in item.key] for item in items}
    for _ in range(MOST_ROUNDS):
        told = client.batch_get_item(RequestItems=asked)
        for table, shown in told["Responses"].items():
            for each in shown:
                if (one := item_of(table, each, names_of[table])) is not None:
                    found[one] = _shown(each, wanted)
        asked = told.get("UnprocessedKeys") or {}
        if not asked:
            return found
    msg = "the table is throttled: a look was not answered whole"
    raise Unreachable(msg)


def _shown(found: Any, wanted: str, *, whole: bool = False) -> Shown:
    if found is None:
        return Shown(present=False)
    if wanted == WRITES:
        return Shown(present=True, writes=str((found.get(WRITES) or {}).get("S", "")))
    stamp = stamp_of(found.get(STAMP))
    if stamp is not None or not whole:
        return Shown(present=True, stamp=stamp)
    text = repr(sorted((name, _sorted(value)) for name, value in found.items()))
    return Shown(present=True, digest=hashlib.sha256(text.encode()).hexdigest())


def _sorted(value: Any) -> object:
    """An attribute's value, the same for equal ones: sets and maps have no order."""
    if isinstance(value, dict):
        # A list under the name of a set's type is a set: the values in a map are never lists.
        return sorted(
            (name, sorted(map(repr, each)) if name in _SETS else _sorted(each))
            if isinstance(each, list)
            else (name, _sorted(each))
            for name, each in value.items()
        )
    return [_sorted(each) for each in value] if isinstance(value, list) else repr(value)


def _says_missing(error: Exception) -> bool:
    return code_of(getattr(error, "response", {})) == _MISSING
