"""One call of an instrumented client: what is added to it, and what its reply says. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode_shims._aws.call import BaseCall, BaseCalls, Kind, Question
from antipode_shims.dynamodb._commands import STATEMENTS, kind_of, shows_items
from antipode_shims.dynamodb._format import STAMP, stamp_of
from antipode_shims.dynamodb._position import item_of, table_name
from antipode_shims.dynamodb._promises import is_record, naming
from antipode_shims.dynamodb._statements import parse

from .reads import consistent
from .rewrite import stamped_item, stamped_update, without_ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_shims.dynamodb._position import Item
    from antipode_shims.dynamodb._shim.base import BaseDynamoDBShim
    from antipode_shims.dynamodb._statements import Statement

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
class Call(BaseCall):
    """One call, and the items that it writes.

    Attributes:
        planned: what it writes.
    """

    planned: list[Planned] = field(default_factory=list)


class Calls(BaseCalls[Call, "BaseDynamoDBShim"]):
    """What an instrumented client does before and after each call."""

    call_class = Call

    def __init__(self, shim: BaseDynamoDBShim, keys: dict[str, tuple[str, ...]]) -> None:
        """Take over what is known of the *keys* of tables, by their names."""
        super().__init__(shim)
        self.keys = keys

    def kind_of(self, operation: str, params: dict[str, Any]) -> Kind:
        """As `BaseCalls.kind_of`."""
        return kind_of(operation, params)

    def reads(self, call: Call, params: dict[str, Any]) -> bool:
        """Whether a floor holds it back."""
        return call.kind is Kind.READ or shows_items(call.operation, params)

    def snapshot(self, call: Call, params: dict[str, Any]) -> str:
        """As `BaseCalls.snapshot`: a read under a floor is consistent."""
        return consistent(call.operation, params)

    def questions(self, call: Call, params: dict[str, Any]) -> Iterator[Question]:
        """The keys of tables that are put into, or written by PartiQL, where they are not known."""
        tables = {table for table, put in _puts(call.operation, params) if put}
        if call.kind is Kind.OTHER:
            found = (_statement(each) for each in _statements(call.operation, params))
            tables |= {each.table for each in found if each is not None}
        for table in tables:
            if table_name(table) not in self.keys:
                yield Question("describe_table", {"TableName": table})

    def learn(self, call: Call, question: Question, answer: dict[str, Any]) -> None:
        """Take over what ``DescribeTable`` says of the key of a table."""
        del call
        schema = answer["Table"]["KeySchema"]
        table = table_name(question.params["TableName"])
        self.keys[table] = tuple(each["AttributeName"] for each in schema)

    def plan(self, call: Call, params: dict[str, Any], *, own_token: bool) -> None:
        """Stamp what *call* writes, in *params*; whatever is inside of them stays as it is.

        Args:
            call: what is to be made.
            params: its parameters, as the API has them.
            own_token: whether the application gave a token that makes a transaction idempotent.
                Its parameters must then be the same in each attempt: nothing is added.
        """
        if call.kind not in (Kind.OTHER, Kind.WRITE):
            return
        planned = getattr(self, f"_plan_{call.operation}", None)
        if planned is None or own_token:
            call.uncovered = True
        else:
            planned(call, params)

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
        if any(map(_has_twice, params["RequestItems"].values())):
            call.uncovered = True  # It is refused for that; each with its stamp would differ.
            return
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
        acted = [self._acted(call, each) for each in params["TransactItems"]]
        writes = [self.shim.written(each.item, each.stamp) for each in call.planned if each.item]
        if len(writes) < len(call.planned):  # A record would not name all.
            writes = []
        params["TransactItems"] = [
            {**each, "Put": naming(put, writes)}
            if (put := each.get("Put")) is not None and is_record(put) and writes
            else each
            for each in acted
        ]

    def _acted(self, call: Call, action: dict[str, Any]) -> dict[str, Any]:
        if (put := action.get("Put")) is not None:
            if is_record(put):
                return action
            return {
                **action,
                "Put": {**put, "Item": self._put(call, put["TableName"], put["Item"])},
            }
        if (update := action.get("Update")) is not None:
            return {**action, "Update": self._update(call, update)}
        if (delete := action.get("Delete")) is not None:
            self._delete(call, delete["TableName"], delete["Key"])
        return action

    def _plan_ExecuteStatement(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        params.update(self._stated(call, params))

    def _plan_BatchExecuteStatement(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        self._plan_statements(call, params)

    def _plan_ExecuteTransaction(self, call: Call, params: dict[str, Any]) -> None:  # noqa: N802
        self._plan_statements(call, params)

    def _plan_statements(self, call: Call, params: dict[str, Any]) -> None:
        held = STATEMENTS[call.operation]
        params[held] = [self._stated(call, each) for each in params[held]]

    def _stated(self, call: Call, given: dict[str, Any]) -> dict[str, Any]:
        """A statement with its stamp; one that is not understood as it is, and marked."""
        found = _statement(given)
        if found is None:
            if kind_of("ExecuteStatement", given) is not Kind.READ:  # Such as EXISTS.
                call.uncovered = True
            call.planned.append(Planned(None, 0))  # Replies to a batch are in order.
            return given
        stamp = self._stamp(call, deleted=found.deletes)
        names = self.keys.get(table_name(found.table))
        item = None if names is None else item_of(found.table, found.values, names)
        call.planned.append(Planned(item, stamp))
        return {**given, "Statement": found.stamped(given["Statement"], stamp)}

    def _record(self, call: Call, reply: dict[str, Any]) -> None:
        if not call.planned:  # It reads.
            return
        if call.operation == "BatchExecuteStatement":
            self._drop_refused(call, reply)
        if call.operation in STATEMENTS:
            call.planned = [each for each in call.planned if each.stamp]
        left = set(_unprocessed(reply))
        done = [each for each in call.planned if each.stamp not in left and each.item not in left]
        writes = [self.shim.written(each.item, each.stamp) for each in done if each.item]
        if len(writes) < len(done):
            self._uncovered(call)
        self._append(call, writes)

    def _drop_refused(self, call: Call, reply: dict[str, Any]) -> None:
        """Leave out what the *reply* says that failed; what failed at the service is in doubt."""
        codes = [(each.get("Error") or {}).get("Code") for each in reply.get("Responses") or ()]
        if "InternalServerError" in codes:
            self._mark(call, "in_doubt")
        call.planned = [
            each for each, code in zip(call.planned, codes, strict=True) if code is None
        ]

    def _hide(self, call: Call, reply: dict[str, Any]) -> None:
        without_ours(reply)
        if call.operation == "ExecuteStatement" and call.kind is not Kind.READ and "Items" in reply:
            # One that returns what it modified shows nothing where that is the stamp alone.
            reply["Items"] = [each for each in reply["Items"] if each]


def _has_twice(requests: list[dict[str, Any]]) -> bool:
    """Whether a request is there twice."""
    return any(each in requests[:at] for at, each in enumerate(requests))


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
            if (put := each.get("Put")) is not None and not is_record(put):
                yield put["TableName"], put


def _statements(operation: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """The statements of an operation of PartiQL, each with its parameters."""
    if operation == "ExecuteStatement":
        return [params]
    held: list[dict[str, Any]] = params.get(STATEMENTS.get(operation, "")) or []
    return held


def _statement(given: dict[str, Any]) -> Statement | None:
    """What a statement writes; None where it is not understood."""
    return parse(given.get("Statement"), given.get("Parameters") or ())


def _unprocessed(reply: dict[str, Any]) -> Iterator[Any]:
    """Stamps of puts, and items of deletions, that a batch left undone."""
    for table, requests in (reply.get("UnprocessedItems") or {}).items():
        for each in requests:
            if (put := each.get("PutRequest")) is not None:
                yield stamp_of(put["Item"].get(STAMP))
            elif (delete := each.get("DeleteRequest")) is not None:
                yield item_of(table, delete["Key"])
