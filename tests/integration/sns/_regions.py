"""Clients of SNS in one region and of SQS in another, on emulators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3

from antipode import Lineage, WriteId
from antipode_shims import sns

if TYPE_CHECKING:
    from contextlib import ExitStack

    from antipode_testing import SNSTopology

NEWS = "news"
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
CAUSES = Lineage([ELSEWHERE])


class Regions:
    """Clients of one test."""

    def __init__(self, topology: SNSTopology, stack: ExitStack) -> None:
        self.topology = topology
        self._stack = stack

    def options(self, service: str) -> dict[str, Any]:
        """What a client of ``sns``, in the first region, or of ``sqs``, in the other, takes."""
        at = ("sns", "sqs").index(service)
        return {
            "region_name": self.topology.regions[at],
            "endpoint_url": self.topology.urls[at],
            **self.topology.credentials,
        }

    def plain(self, service: str) -> Any:
        """A plain client."""
        made = boto3.client(service, **self.options(service))
        self._stack.callback(made.close)
        return made

    def instrumented(self, service: str) -> Any:
        """An instrumented client."""
        client = sns.instrument_client(self.plain(service), datastore=NEWS)
        self._stack.callback(sns.uninstrument_client, client)
        return client


def attributes(number: int) -> dict[str, Any]:
    """So many attributes of the application's."""
    return {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(number)}


def received(sqs: Any, queue: str, **options: Any) -> dict[str, Any]:
    """The next message of a queue; it waits for one."""
    told = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10, **options)
    (message,) = told["Messages"]
    found: dict[str, Any] = message
    return found
