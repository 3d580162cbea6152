"""Replies: what a function returned or declined with, as it is stored and given again."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import ReplyTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Statuses of a stored reply of a function.
RETURNED = 200
DECLINED = 400


@dataclass(frozen=True, slots=True)
class Reply:
    """What is stored of a reply.

    Attributes:
        status: of a response; 200 for what a function returned, 400 for what it declined with.
        body: ASCII text; of a function what it returned, as JSON.
        lineage: the text of what the reply depends on; empty for nothing.
    """

    status: int
    body: str
    lineage: str = ""


class Declined(Exception):  # noqa: N818 - it is an answer
    """What a function declined with, on its way to whoever keeps it as a reply."""

    def __init__(self, error: Exception) -> None:
        """*error* is one of those that are replies."""
        super().__init__()
        self.error = error


class Codec:
    """How a function's replies become text, and text its replies: as JSON.

    A reply that is stored is decoded for the first caller as for later ones, so that all of them
    get the same.
    """

    def __init__(
        self, kind: type[Any] | None, declines: Sequence[type[Exception]], most_bytes: int
    ) -> None:
        """Make one.

        Args:
            kind: what is returned, where it is more than JSON: a dataclass or a Pydantic model.
            declines: the exceptions that are replies, made again from their arguments.
            most_bytes: the size of the largest reply.
        """
        self._kind = kind
        self._declines = {each.__qualname__: each for each in declines}
        self.declines = tuple(declines)
        self._most_bytes = most_bytes

    def returned(self, value: object, lineage: str) -> Reply:
        """The reply that *value* is.

        Raises:
            ReplyTooLarge: it is larger than it may be.
            TypeError: it is nothing that JSON can say.
        """
        return self._reply(RETURNED, value, lineage)

    def declined(self, error: Exception, lineage: str) -> Reply:
        """The reply that *error* is, one of those that are replies.

        Raises:
            ReplyTooLarge: as :meth:`returned`.
            TypeError: its arguments are nothing that JSON can say.
        """
        kind = next(each for each in type(error).__mro__ if each in self.declines)
        return self._reply(DECLINED, {"error": kind.__qualname__, "args": error.args}, lineage)

    def value(self, reply: Reply) -> Any:  # noqa: ANN401 - what the function returns
        """What *reply* says, for a caller.

        Raises:
            Exception: what the function declined with.
        """
        value = json.loads(reply.body)
        if reply.status == DECLINED:
            raise self._declines[value["error"]](*value["args"])
        kind: Any = self._kind
        if kind is None:
            return value
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)
        return kind(**value)

    def _reply(self, status: int, value: object, lineage: str) -> Reply:
        body = canonical(value)
        if len(body) > self._most_bytes:
            msg = (
                f"a reply of {len(body)} bytes, at most {self._most_bytes} are kept: reply with a "
                "reference, or state max_reply="
            )
            raise ReplyTooLarge(msg)
        return Reply(status, body, lineage)


def canonical(value: object) -> str:
    """*value* as JSON whose text does not depend on the order of members.

    Raises:
        TypeError: it has parts that are neither JSON nor dataclasses, Pydantic models, bytes, or
            values with a text of their own (dates, decimals, UUIDs).
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """What JSON says of a value that it does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode("ascii")
    if type(value).__module__ in {"datetime", "decimal", "uuid"}:
        return str(value)
    msg = (
        f"a {type(value).__qualname__} is nothing that JSON can say: declare the arguments with "
        "digest=, and the reply with a dataclass or a Pydantic model"
    )
    raise TypeError(msg)
