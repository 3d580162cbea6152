"""Messages of SQS that an application copies before it handles them: what they depend on."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete
from antipode_shims import sns
from antipode_shims.sns._clients import received
from antipode_shims.sns._format import show_checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

boto3 = pytest.importorskip("boto3")

NEWS, BODY = "news", "post:1"
CAUSES = Lineage([WriteId("posts", "log", 7, 490_000)])
COPIES: dict[str, Callable[[Any], Any]] = {
    "received": lambda message: message,
    "dict": dict,
    "display": lambda message: {**message},
    "json": lambda message: json.loads(json.dumps(message)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda message: pickle.loads(pickle.dumps(message)),  # noqa: S301 - its own
}


class Queue:
    """A client of SQS, and the one message that its queue has, named *name*."""

    def __init__(self, name: str, *, label: str | None) -> None:
        self.client = boto3.client(
            "sqs",
            "eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",  # noqa: S106 - nobody checks it
        )
        self._label = label
        self._message = {
            "MessageId": name,
            "ReceiptHandle": f"of {name}",
            "Body": BODY,
            "MD5OfBody": hashlib.md5(BODY.encode(), usedforsecurity=False).hexdigest(),
        }
        self.client.meta.events.register("before-send.sqs.ReceiveMessage", self._answer)

    def _answer(self, request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse

        message = dict(self._message)
        asked = json.loads(request.body).get("MessageAttributeNames", ())
        if self._label is not None and "antipode" in asked:
            shown = {"DataType": "String", "StringValue": self._label}
            message["MessageAttributes"] = {"antipode": shown}
        return AWSResponse(request.url, 200, {}, Answer(json.dumps({"Messages": [message]})))

    def receive(self) -> Any:
        """The message as the application gets it."""
        url = "https://sqs.eu-west-1.amazonaws.com/1/q"
        (message,) = self.client.receive_message(QueueUrl=url)["Messages"]
        assert "MessageAttributes" not in message
        return message


class Answer:
    """The body of an answer."""

    def __init__(self, text: str) -> None:
        self._text = text

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._text.encode()


def lineage_of(message: Any) -> Lineage:
    """What the handler of *message* depends on."""
    with sns.message(message, datastore=NEWS) as scope:
        return scope.lineage


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_depends_on_what_the_message_did(how: str) -> None:
    """However it was made: the label is hidden, and not lost."""
    queue = Queue(f"labelled {how}", label=antipode.serialize(CAUSES))
    sns.instrument_client(queue.client, datastore=NEWS)
    assert lineage_of(COPIES[how](queue.receive())) == CAUSES


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_message_without_a_label_is_complete(how: str) -> None:
    """Its publisher is not instrumented: that is known."""
    queue = Queue(f"plain {how}", label=None)
    sns.instrument_client(queue.client, datastore=NEWS)
    assert lineage_of(COPIES[how](queue.receive())).empty


def test_a_message_that_nobody_here_received_is_incomplete() -> None:
    """Another process hid its label, or a plain client did not ask for one: never nothing."""
    queue = Queue("elsewhere", label=antipode.serialize(CAUSES))
    assert lineage_of(queue.receive()).incomplete == {Incomplete(NEWS, "unreadable")}


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes; a copy of it is incomplete, and the message itself is not."""
    monkeypatch.setattr(received, "MOST_REMEMBERED", 2)
    labels = received.Labels()
    messages = [{"MessageId": str(number), "Body": BODY} for number in range(3)]
    for each in messages:
        labels.note(each, antipode.serialize(CAUSES))
    found = [labels.of(each, NEWS) for each in messages]
    assert found == [Lineage(incomplete=[(NEWS, "unreadable")]), CAUSES, CAUSES]


def test_an_envelope_without_a_label_is_complete() -> None:
    """Its attributes are in the body, where nobody hides them."""
    envelope = json.dumps({"Type": "Notification", "Message": "hello"})
    assert lineage_of({"MessageId": "wrapped", "Body": envelope}).empty


def test_the_checksum_is_of_the_attributes_that_are_shown() -> None:
    """As SQS documents it: of names in order, types, and texts or bytes, each after its length."""

    def part(value: bytes) -> bytes:
        return len(value).to_bytes(4, "big") + value

    def checksum(*parts: bytes) -> str:
        return hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()

    blob = part(b"blob") + part(b"Binary") + b"\x02" + part(b"\x00\xff")
    text = part(b"text") + part(b"String") + b"\x01" + part(b"hello")
    ours = part(b"antipode") + part(b"String") + b"\x01" + part(b"L")
    shown: dict[str, dict[str, Any]] = {
        "text": {"DataType": "String", "StringValue": "hello"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    all_of = {**shown, "antipode": {"DataType": "String", "StringValue": "L"}}
    told = {"MD5OfMessageAttributes": checksum(ours, blob, text)}
    show_checksum(told, all_of, shown)
    assert told == {"MD5OfMessageAttributes": checksum(blob, text)}
    show_checksum(told, shown, {})
    assert not told
    damaged = {"MD5OfMessageAttributes": checksum(b"damaged")}
    show_checksum(damaged, all_of, shown)
    assert damaged == {"MD5OfMessageAttributes": checksum(b"damaged")}
