"""The S3 shim keeps the contract, over two regions of an emulator (ministack), not on AWS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar

import pytest

from antipode_shims import s3
from antipode_shims.s3._format import NAME, room_in
from antipode_testing import ShimContract
from tests.contract._aws import POSTS, RegionsContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import S3Topology

pytestmark = pytest.mark.store("s3")


class S3ContractStore(RegionsContractStore):
    """A bucket in each region."""

    shims, service, kept_in = s3, "s3", "bucket"

    def refused_write(self, key: str, value: bytes) -> None:
        """A condition that does not hold."""
        with self.instrumented() as client:
            client.put_object(Bucket=POSTS, Key=key, Body=value, IfMatch='"another"')

    def unknown_write(self, key: str, value: bytes) -> None:
        """Tags: they make no version."""
        self.plain().put_object(Bucket=POSTS, Key=key, Body=value)
        tags = {"TagSet": [{"Key": "a", "Value": value.decode()}]}
        with self.instrumented() as client:
            client.put_object_tagging(Bucket=POSTS, Key=key, Tagging=tags)

    def corrupt(self, key: str, text: str) -> None:
        """Put it again with another text, by a client without the shim."""
        text = text[: room_in({})]  # AWS takes no more.
        self.plain().put_object(Bucket=POSTS, Key=key, Body=b"1", Metadata={NAME: text})
        self.topology.wait_replicated()


class TestS3(ShimContract):
    """An emulator."""

    opt_outs: ClassVar[dict[str, str]] = {
        "deletes": "a delete marker has no metadata: who finds no object depends on none",
        "failover": "a bucket stays in its region: there is no primary to replace",
        "fences": "each object has versions of its own: no position stands for all writes",
        "partial_updates": "Table 2 writes values whole",
        "promises": "records of promises are for a later release",
        "abandonment": "records of promises are for a later release",
    }

    @pytest.fixture
    def store(self, antipode_s3: S3Topology) -> Iterator[S3ContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            store = S3ContractStore(antipode_s3, stack)
            yield store
            store.writer.close()
            store.reader.close()
