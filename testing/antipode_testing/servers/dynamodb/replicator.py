"""What global tables do between two regions of an emulator: copies, of which the last wins."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode_testing._errors import ServerFailed

if TYPE_CHECKING:
    from antipode_testing.servers.aws_json import JsonApi

#: Seconds between two polls a stream: the most of an idle one, and the least.
IDLE_S, BUSY_S = 0.05, 0.004
#: How much longer each pause of an idle stream is than the one before.
SLOWER = 1.1
JOIN_S = 10.0


class Change(NamedTuple):
    """One write of an item.

    Attributes:
        at_s: when it was seen in the stream of its region, on the monotonic clock.
        origin: the region's name, which decides between writes of one moment.
        table: the table's name.
        keys: the item's keys.
        item: the item after it; None where it was deleted.
    """

    at_s: float
    origin: str
    table: str
    keys: dict[str, Any]
    item: dict[str, Any] | None

    @property
    def name(self) -> str:
        """What item it is of."""
        return _text([self.table, self.keys])

    @property
    def wins(self) -> tuple[float, str]:
        """The larger of two changes of an item is the last one."""
        return self.at_s, self.origin


class Region:
    """One region: its emulator, its streams, and what was written in it last.

    Args:
        name: the region's.
        api: of its emulator; used by one thread at a time.
    """

    def __init__(self, name: str, api: JsonApi) -> None:
        self.name = name
        self.api = api
        self.outgoing: deque[Change] = deque()
        self.latest: dict[str, Change] = {}
        self._iterators: dict[str, str] = {}
        self._copies: dict[str, deque[Change]] = {}

    def create_table(self, name: str, keys: dict[str, str]) -> None:
        """Create a table whose stream is read from its beginning."""
        kinds = zip(keys, ("HASH", "RANGE"), strict=False)
        made = self.api.call(
            "CreateTable",
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
            AttributeDefinitions=[
                {"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        arn = made["TableDescription"]["LatestStreamArn"]
        stream = self.api.call("DescribeStream", "streams", StreamArn=arn)["StreamDescription"]
        (shard,) = stream["Shards"]
        self._iterators[name] = self.api.call(
            "GetShardIterator",
            "streams",
            StreamArn=arn,
            ShardId=shard["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]

    def read(self) -> bool:
        """Take in what was written since; whether something was."""
        found = [self._read(table) for table in self._iterators]
        return any(found)

    def _read(self, table: str) -> bool:
        given = {"ShardIterator": self._iterators[table]}
        told = self.api.call("GetRecords", "streams", **given)
        self._iterators[table] = told["NextShardIterator"]
        for record in told["Records"]:
            image = record["dynamodb"]
            self._take(
                Change(time.monotonic(), self.name, table, image["Keys"], image.get("NewImage"))
            )
        return bool(told["Records"])

    def _take(self, change: Change) -> None:
        latest = self.latest.get(change.name)
        if copies := self._copies.get(_copy(change)):
            copied = copies.popleft()
            if not copies:
                del self._copies[_copy(change)]
            # A write that came meanwhile, and is later, was overwritten: it is written again.
            if latest is not None and latest.wins > copied.wins:
                self.put(latest)
            return
        self.latest[change.name] = change
        self.outgoing.append(change)

    def apply(self, change: Change) -> None:
        """Write what was written in the other region, unless a later write is here."""
        latest = self.latest.get(change.name)
        if latest is None or latest.wins < change.wins:
            self.put(change)

    def put(self, change: Change) -> None:
        """Let the item be as *change* left it."""
        if change.item is None:
            self.write("DeleteItem", change, Key=change.keys)
        else:
            self.write("PutItem", change, Item=change.item)

    def write(self, operation: str, change: Change, **given: Any) -> None:
        """Write a copy, which is not copied back."""
        told = self.api.call(operation, TableName=change.table, ReturnValues="ALL_OLD", **given)
        if told.get("Attributes") != change.item:  # Else nothing changed: no record comes.
            self._copies.setdefault(_copy(change), deque()).append(change)

    def items(self, table: str) -> list[dict[str, Any]]:
        """All items of a table of a test's size."""
        found: list[dict[str, Any]] = self.api.call("Scan", TableName=table)["Items"]
        return found


class Replicator:
    """Copies between two regions, in a thread of its own.

    Attributes:
        lag_s: seconds by which each copy is late.
        paused: whether copies are held.
        is_cut: whether the regions are partitioned, which holds them as well.
    """

    def __init__(self, home: Region, away: Region) -> None:
        self.lag_s = 0.0
        self.paused = self.is_cut = False
        self._home, self._away = home, away
        self._tables: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dynamodb-replicator", daemon=True)

    def start(self) -> None:
        """Begin to copy."""
        self._thread.start()

    def undisturbed(self) -> None:
        """Copy at once, as at the beginning."""
        self.lag_s = 0.0
        self.paused = self.is_cut = False

    def create_table(self, name: str, keys: dict[str, str]) -> None:
        """Create a table in both regions."""
        with self._lock:
            for region in (self._home, self._away):
                region.create_table(name, keys)
            self._tables[name] = dict(keys)

    def copy_anew(self) -> None:
        """Let the second region have what the first one has, and nothing else."""
        with self._lock:
            self._empty()
            for table, keys in self._tables.items():
                for item in self._home.items(table):
                    self._seed("PutItem", table, keys, item, item)

    def forget(self) -> None:
        """Throw the items of the second region away, as if they had never come."""
        with self._lock:
            self._empty()

    def _empty(self) -> None:
        for table, keys in self._tables.items():
            for item in self._away.items(table):
                self._seed("DeleteItem", table, keys, item, None)

    def _seed(
        self,
        operation: str,
        table: str,
        keys: dict[str, str],
        item: dict[str, Any],
        after: dict[str, Any] | None,
    ) -> None:
        key = {name: item[name] for name in keys}
        given = {"Key": key} if after is None else {"Item": after}
        self._away.write(operation, Change(math.inf, "", table, key, after), **given)

    def settled(self) -> bool:
        """Whether nothing that was written before is still to be copied."""
        with self._lock:
            self._step()
            return not (self._home.outgoing or self._away.outgoing)

    def close(self) -> None:
        """End the thread and its connections. Idempotent."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)
        for region in (self._home, self._away):
            region.api.close()

    def _run(self) -> None:
        pause_s = BUSY_S
        while not self._closing.wait(pause_s):
            try:
                with self._lock:
                    busy = self._step()
            except (ServerFailed, OSError):
                busy = False  # A server that was stopped: whoever stopped it builds both again.
            pause_s = BUSY_S if busy else min(pause_s * SLOWER, IDLE_S)

    def _step(self) -> bool:
        """Read both streams once and copy what is due; whether something is going on."""
        busy = [self._home.read(), self._away.read()]
        self._copy(self._home, self._away)
        self._copy(self._away, self._home)
        return any(busy) or bool(self._home.outgoing or self._away.outgoing)

    def _copy(self, source: Region, target: Region) -> None:
        while source.outgoing and not (self.paused or self.is_cut):
            if time.monotonic() < source.outgoing[0].at_s + self.lag_s:
                return
            target.apply(source.outgoing[0])
            source.outgoing.popleft()


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _copy(change: Change) -> str:
    return _text([change.table, change.keys, change.item])
