"""When a copy of an object counts as there: once a read that names no version shows it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from antipode_shims.s3._endpoint import _shown
from antipode_shims.s3._look import Question
from antipode_shims.s3._position import Version

BUCKET, KEY = "posts", "a"


class Copies:
    """A client of a bucket that has versions of a key, the newest first; reads show *shown*."""

    def __init__(self, held: list[str], shown: str | None, markers: tuple[str, ...] = ()) -> None:
        self.held, self.shown, self.markers = held, shown, markers
        self.asked: list[str] = []

    def head_object(self, *, Bucket: str, Key: str, VersionId: str | None = None) -> Any:  # noqa: N803
        assert (Bucket, Key) == (BUCKET, KEY)
        self.asked.append("head")
        version = self.shown if VersionId is None else VersionId
        if version is None or version not in self.held:
            raise self._error(404, {})
        if version in self.markers:
            headers = {"x-amz-delete-marker": "true", "x-amz-version-id": version}
            raise self._error(404 if VersionId is None else 405, headers)
        return {"VersionId": version}

    def list_object_versions(self, *, Prefix: str, VersionIdMarker: str, **_: Any) -> Any:  # noqa: N803
        assert Prefix == KEY
        self.asked.append("list")
        after = self.held[self.held.index(VersionIdMarker) + 1 :]
        found: dict[str, list[Any]] = {"Versions": [], "DeleteMarkers": []}
        for each in after:
            kind = "DeleteMarkers" if each in self.markers else "Versions"
            found[kind].append({"Key": KEY, "VersionId": each})
        return found

    @staticmethod
    def _error(status: int, headers: dict[str, str]) -> ClientError:
        metadata: Any = {"HTTPStatusCode": status, "HTTPHeaders": headers}
        said: Any = {"ResponseMetadata": metadata, "Error": {"Code": str(status)}}
        return ClientError(said, "HeadObject")


def present(copies: Copies, number: str, *, of_copies: bool = True) -> bool:
    """Whether a poll takes the version *number* for visible."""
    version = Version(BUCKET, KEY, number)
    found = _shown(copies, version, Question("", (version,), copies=of_copies))
    assert found is not None
    return found.present


@pytest.mark.parametrize(
    ("held", "shown", "markers", "expected"),
    [
        pytest.param(["v1"], "v1", (), True, id="reads show it"),
        pytest.param(["v1"], None, (), False, id="reads show nothing yet"),
        pytest.param(["v1", "v0"], "v0", (), False, id="reads show an older one"),
        pytest.param(["v2", "v1"], "v2", (), True, id="reads show a newer one"),
        pytest.param(["v1", "v0"], "v0", ("v0",), False, id="reads show an older marker"),
        pytest.param(["v2", "v1"], "v2", ("v2",), True, id="reads show a newer marker"),
        pytest.param(["v1", "v0"], "v1", ("v1",), True, id="it is the marker that reads show"),
        pytest.param(["v1", "v0"], "v0", ("v1",), False, id="a marker that reads do not show"),
    ],
)
def test_a_copy_is_there_once_reads_show_it(
    held: list[str], shown: str | None, markers: tuple[str, ...], *, expected: bool
) -> None:
    """SeaweedFS makes a copied version, and later has its key show it: no read may come between."""
    assert present(Copies(held, shown, markers), "v1") is expected


def test_where_it_was_written_one_request_will_do() -> None:
    """S3 itself is consistent: what is there is what reads show."""
    copies = Copies(["v2", "v1"], "v2")
    assert present(copies, "v1", of_copies=False)
    assert copies.asked == ["head"]
