"""The S3 shim keeps the contract over real servers, two clusters of SeaweedFS, not over AWS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.contract import test_s3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import SeaweedFSTopology

pytestmark = pytest.mark.store("seaweedfs")


class SeaweedFSContractStore(test_s3.S3ContractStore):
    """The same, but for what SeaweedFS does not store."""

    def corrupt(self, key: str, text: str) -> None:
        """An item of metadata without text is not stored: another that is no lineage."""
        super().corrupt(key, text or "!")


class TestSeaweedFS(test_s3.TestS3):
    """Real servers, and their own replication."""

    @pytest.fixture
    def store(self, antipode_seaweedfs: SeaweedFSTopology) -> Iterator[SeaweedFSContractStore]:
        """A shim in each region."""
        with ExitStack() as stack:
            store = SeaweedFSContractStore(antipode_seaweedfs, stack)
            yield store
            store.writer.close()
            store.reader.close()
