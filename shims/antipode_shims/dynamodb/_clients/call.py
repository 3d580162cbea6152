"""One call of an instrumented client: what is added to it, and what its reply says. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode.shim import config, count, log_once, record_write, scope_in, unscoped
from antipode_shims.dynamodb._commands import Kind, kind_of, shows_items
from antipode_shims.dynamodb._format import STAMP, stamp_of
from antipode_shims.dynamodb._position import item_of, table_name

from .botocore import in_doubt, refused
from .rewrite import stamped_item, stamped_update, without_ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Scope
    from antipode_shims.dynamodb._position import Item
    from antipode_shims.dynamodb._shim.base import BaseDynamoDBShim

#: The actions of a transaction that write.
_ACTIONS = ("Put", "Update", "Delete")


@dataclass(frozen=True, slots=True)
class Planned:
    """One item that a request writes.

    Attributes:
        item: its key; None where it is not known.
        stamp: what the write gets.
    """

    item: Item | None
    stamp: int


@dataclass(slots=True)
class Call:
    """One call, from the moment that its parameters are built.

    Attributes:
        operation: its name, as the API has it.
        kind: what it means.
        scope: the request that it is of, whatever thread its reply comes in.
        planned: what it writes.
        uncovered: whether it may write what is not known.
        attempts: how often it was sent.
    """

    operation: str
    kind: Kind
    scope: Scope | None = None
    planned: list[Planned] = field(default_factory=list)
    uncovered: bool = False
    attempts: int = 0


class Calls:
    """What an instrumented client does before and after each call."""

    def __init__(self, shim: BaseDynamoDBShim, keys: dict[str, tuple[str, ...]]) -> None:
        """Take over what is known of the *keys* of tables, by their names."""
        self.shim = shim
        self.keys = keys

    def begin(self, operation: str, params: dict[str, Any]) -> Call:
        """A call that is about to be made.

        Raises:
            ConfigurationError: it writes outside of a scope, and ``on_unscoped="raise"``.
        """
        call = Call(operation, kind_of(operation, params), scope_in())
        if call.kind is Kind.WRITE and call.scope is None and config().on_unscoped == "raise":
            unscoped("write", self.shim.datastore)
        return call

    def reads(self, call: Call, params: dict[str, Any]) -> bool:
        """Whether a floor holds it back."""
        return call.kind is Kind.READ or shows_items(call.operation, params)

    def unknown_tables(self, call: Call, params: dict[str, Any]) -> set[str]:
        """Tables that are put into and whose keys are not known."""
        named = {table for table, put in _puts(call.operation, params) if put}
        return {table for table in named if table_name(table) not in self.keys}

    def learn(self, table: str, described: dict[str, Any]) -> None:
        """Take over what ``DescribeTable`` says of the key of *table*."""
        schema = described["Table"]["KeySchema"]
        self.keys[table_name(table)] = tuple(each["AttributeName"] for each in schema)

    def plan(self, call: Call, params: dict[str, Any], *, own_token: bool) -> None:
        """Stamp what *call* writes, in *params*; whatever is inside of them stays as it is.

        Args:
            call: what is to be made.
            params: its parameters, as the API has them.
            own_token: whether the application gave a token that makes a transaction idempotent.
                Its parameters must then be the same in each attempt: nothing is added.
        """
        if call.kind is Kind.OTHER or (own_token and call.kind is Kind.WRITE):
            call.uncovered = True
        elif call.kind is Kind.WRITE:
            getattr(self, f"_plan_{call.operation}")(call, params)

    def _stamp(self, call: Call, *, deleted: bool = False) -> int:
        lineage = Lineage() if call.scope is None else call.scope.known
        return self.shim.stamp(lineage, deleted=deleted)

    def _put(self, call: Call, table: str, item: dict[str, Any]) -> dict[str, Any]:
        stamp = self._stamp(call)
        names = self.keys.get(table_name(table))
        key = None if names is None else item_of(table, item, names)
        call.planned.append(Planned(key, stamp))
        return stamped_item(item, stamp)

    def _update(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        stamp = self._stamp(call)
        call.planned.append(Planned(item_of(params["TableName"], params["Key"]), stamp))
        return stamped_update(params, stamp)

    def _delete(self, call: Call, table: str, key: dict[str, Any]) -> None:
        stamp = self._stamp(call, deleted=True)
        call.planned.append(Planned(item_of(table, key), stamp))

    def _plan_PutItem(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802 - as the API
        params["Item"] = self._put(call, params["TableName"], params["Item"])

    def _plan_UpdateItem(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        params.update(self._update(call, params))

    def _plan_DeleteItem(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        self._delete(call, params["TableName"], params["Key"])

    def _plan_BatchWriteItem(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        params["RequestItems"] = {
            table: [self._batched(call, table, each) for each in requests]
            for table, requests in params["RequestItems"].items()
        }

    def _batched(self, call: Call, table: str, request: dict[str, Any]) -> dict[str, Any]:
        if (put := request.get("PutRequest")) is not None:
            return {"PutRequest": {**put, "Item": self._put(call, table, put["Item"])}}
        self._delete(call, table, request["DeleteRequest"]["Key"])
        return request

    def _plan_TransactWriteItems(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        params["TransactItems"] = [self._acted(call, each) for each in params["TransactItems"]]

    def _acted(self, call: Call, action: dict[str, Any]) -> dict[str, Any]:
        if (put := action.get("Put")) is not None:
            return {
                **action,
                "Put": {**put, "Item": self._put(call, put["TableName"], put["Item"])},
            }
        if (update := action.get("Update")) is not None:
            return {**action, "Update": self._update(call, update)}
        if (delete := action.get("Delete")) is not None:
            self._delete(call, delete["TableName"], delete["Key"])
        return action

    def replied(self, call: Call, status: int, reply: dict[str, Any]) -> None:
        """Take in the reply to *call*, from which our attributes go."""
        if status >= _REFUSED:
            if call.kind in (Kind.WRITE, Kind.OTHER) and not refused(reply, attempts=call.attempts):
                self._mark(call, "in_doubt")
        elif call.uncovered:
            self._uncovered(call)
        else:
            self._record(call, reply)
        without_ours(reply)

    def _record(self, call: Call, reply: dict[str, Any]) -> None:
        left = set(_unprocessed(reply))
        done = [each for each in call.planned if each.stamp not in left and each.item not in left]
        writes = [self.shim.written(each.item, each.stamp) for each in done if each.item]
        if len(writes) < len(done):
            self._uncovered(call)
        if call.scope is not None:
            call.scope.append(*writes)
        else:
            record_write(*writes)

    def failed(self, call: Call, error: BaseException) -> None:
        """Take in that *call* ended without a reply."""
        writes = call.kind in (Kind.WRITE, Kind.OTHER)
        if call.attempts and writes and in_doubt(error, attempts=call.attempts):
            self._mark(call, "in_doubt")

    def _uncovered(self, call: Call) -> None:
        """A write, or what may be one, whose items are not known."""
        datastore = self.shim.datastore
        count("uncovered_write", datastore)
        message = "%s on %r is not covered: what it wrote is no dependency of its request"
        log_once("uncovered_write", datastore, call.operation, message, call.operation, datastore)
        self._mark(call, "unsampled")

    def _mark(self, call: Call, reason: str) -> None:
        count("incomplete", self.shim.datastore)
        if call.scope is not None:
            call.scope.mark_incomplete(self.shim.datastore, reason)

    def not_followed(self, call: Call, error: Exception) -> None:
        """Note that something of ours failed, which must not fail the application's call."""
        message = "%s on %r could not be followed: %r"
        what, datastore = call.operation, self.shim.datastore
        log_once("not_followed", datastore, what, message, what, datastore, error)
        if call.kind is not Kind.READ:
            call.uncovered = True

    def lost(self, call: Call, error: Exception) -> None:
        """Note the same of a reply: what a write wrote is not known any more."""
        self.not_followed(call, error)
        if call.uncovered:
            self._mark(call, "unsampled")


_REFUSED = 300


def _puts(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tables of what is put, and what."""
    if operation == "PutItem":
        yield params["TableName"], params["Item"]
    elif operation == "BatchWriteItem":
        for table, requests in params["RequestItems"].items():
            for each in requests:
                yield table, each.get("PutRequest")
    elif operation == "TransactWriteItems":
        for each in params["TransactItems"]:
            if (put := each.get("Put")) is not None:
                yield put["TableName"], put


def _unprocessed(reply: dict[str, Any]) -> Iterator[Any]:
    """Stamps of puts, and items of deletions, that a batch left undone."""
    for table, requests in (reply.get("UnprocessedItems") or {}).items():
        for each in requests:
            if (put := each.get("PutRequest")) is not None:
                yield stamp_of(put["Item"].get(STAMP))
            elif (delete := each.get("DeleteRequest")) is not None:
                yield item_of(table, delete["Key"])
