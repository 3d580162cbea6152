"""The library's own clients: one for each region that is asked, and the looks that they make."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Endpoint, Observation, Unreachable

from ._clients.botocore import client_error, code_of, own_call, passes
from ._format import STAMP, stamp_of
from ._look import Homes, Question, Shown, look
from ._position import Item, item_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from antipode import WriteId
    from antipode.shim import Wake

    from ._clients.botocore import Settings
    from ._look import Answer

#: The least pause between two looks of a barrier, in seconds: each is a request that costs money.
POLL_S = 0.01
#: How many items one request reads, and how often what was left out is asked for again.
MOST_KEYS, MOST_ROUNDS = 100, 5
_MISSING = "ResourceNotFoundException"


class Regions:
    """The clients by which regions are looked at. Thread-safe.

    Args:
        settings: of the application's client.
        others: endpoint URLs of further regions by their names, where they are not AWS's own.
    """

    def __init__(self, settings: Settings, others: Mapping[str, str]) -> None:
        self.here = settings.region
        self.homes = Homes()
        self._settings = settings
        self._urls = {**others, self.here: settings.endpoint_url}
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def observe(self, writes: Collection[WriteId]) -> Observation:
        """What this region shows of *writes*.

        Raises:
            Unreachable: it was throttled, or could not be reached.
            Exception: as botocore does where looking again cannot help.
        """
        steps = look(writes, self.here, self.homes)
        try:
            question = next(steps)
            while True:
                question = steps.send(self._answer(question))
        except StopIteration as end:
            observation: Observation = end.value
            return observation

    def _answer(self, question: Question) -> Answer | Exception:
        region = question.region or self.here
        try:
            with own_call():
                return self._read(self._client(region), question)
        except Exception as error:
            if region != self.here:
                return error
            if passes(error):
                raise Unreachable(str(error)) from error
            raise

    def _client(self, region: str) -> Any:
        with self._lock:
            if self._pid != os.getpid():  # The parent keeps its connections.
                self._clients, self._pid = {}, os.getpid()
            found = self._clients.get(region)
            if found is None:
                url = self._urls.get(region)
                if url is None and not self._settings.is_aws:
                    msg = f"say where it is: regions={{{region!r}: its endpoint URL}}"
                    raise ConfigurationError(msg)
                found = self._clients[region] = self._settings.connect(region, url)
            return found

    def _read(self, client: Any, question: Question) -> Answer:
        if not question.items:
            _ask_for_an_answer(client)
        if question.whole or len(question.items) == 1:
            return {each: _read_one(client, each, whole=question.whole) for each in question.items}
        found: dict[Item, Shown | None] = {}
        for start in range(0, len(question.items), MOST_KEYS):
            some = question.items[start : start + MOST_KEYS]
            try:
                found.update(_read_some(client, some))
            except client_error() as error:
                if not _says_missing(error):
                    raise
                found.update({each: _read_one(client, each, whole=False) for each in some})
        return found

    def close(self) -> None:
        """Close every client. Idempotent."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def _ask_for_an_answer(client: Any) -> None:
    """Ask for something that costs no read units; that it is not allowed is an answer, too."""
    try:
        client.list_tables(Limit=1)
    except client_error() as error:
        if passes(error):
            raise


def _read_one(client: Any, item: Item, *, whole: bool) -> Shown | None:
    given: dict[str, Any] = {"TableName": item.table, "Key": item.wire, "ConsistentRead": True}
    if not whole:
        given |= {"ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": STAMP}}
    try:
        found = client.get_item(**given).get("Item")
    except client_error() as error:
        if _says_missing(error):
            return None
        raise
    return _shown(found, whole=whole)


def _read_some(client: Any, items: Sequence[Item]) -> dict[Item, Shown | None]:
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
                "ExpressionAttributeNames": {"#a": STAMP, **names},
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
                    found[one] = _shown(each, whole=False)
        asked = told.get("UnprocessedKeys") or {}
        if not asked:
            return found
    msg = "the table is throttled: a look was not answered whole"
    raise Unreachable(msg)


def _shown(found: Any, *, whole: bool) -> Shown:
    if found is None:
        return Shown(present=False)
    stamp = stamp_of(found.get(STAMP))
    if stamp is not None or not whole:
        return Shown(present=True, stamp=stamp)
    text = repr(sorted((name, _sorted(value)) for name, value in found.items()))
    return Shown(present=True, digest=hashlib.sha256(text.encode()).hexdigest())


def _sorted(value: Any) -> object:
    """An attribute's value, the same for equal ones: sets and maps have no order."""
    if isinstance(value, dict):
        return sorted((name, _sorted(each)) for name, each in value.items())
    return [_sorted(each) for each in value] if isinstance(value, list) else repr(value)


def _says_missing(error: Exception) -> bool:
    return code_of(getattr(error, "response", {})) == _MISSING


class DynamoDBEndpoint(Endpoint):
    """Where barriers look at a region."""

    def __init__(self, regions: Regions) -> None:
        """Use the clients of *regions*, which its shim closes."""
        self._regions = regions

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Look once.

        Raises:
            Unreachable: as :meth:`Regions.observe`.
            Exception: as there.
        """
        del timeout_s  # Each request has its own, shorter limit.
        return self._regions.observe(writes)

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait until *wake*, for *timeout_s* seconds, but no less than the polling interval."""
        wake.wait(max(timeout_s, POLL_S))

    def close(self) -> None:
        """Leave the clients to their shim."""
