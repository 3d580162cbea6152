"""Which operations publish, and which receive. Static tables; no I/O."""

from __future__ import annotations

#: Operations that label each message with what it depends on: the field with a message's body,
#: and where the messages of a batch are.
PUBLISHING: dict[str, tuple[str, str]] = {
    "Publish": ("Message", ""),
    "PublishBatch": ("Message", "PublishBatchRequestEntries"),
    "SendMessage": ("MessageBody", ""),
    "SendMessageBatch": ("MessageBody", "Entries"),
}
COVERED_WRITES = frozenset(PUBLISHING)
#: Operations whose messages are handled within ``message``.
COVERED_READS = frozenset({"ReceiveMessage"})
