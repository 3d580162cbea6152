"""The names of objects in a lineage. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_REGION = re.compile(r"[a-z0-9-]+")
#: The version of an object that a bucket took without versioning.
NO_VERSION = "null"


class Place(NamedTuple):
    """What the key of a write names.

    Attributes:
        bucket: which took it.
        key: of the object.
        region: of the bucket, as the writer's client named it.
    """

    bucket: str
    key: str
    region: str

    @property
    def named(self) -> str:
        """Its name in a lineage."""
        return f"{self.bucket}/{self.key}@{self.region}"

    @classmethod
    def of(cls, bucket: object, key: object, region: str) -> Place | None:
        """The object of a request's parameters; None where they name no bucket, such as by ARN."""
        if not (isinstance(bucket, str) and _BUCKET.fullmatch(bucket)):
            return None
        return cls(bucket, key, region) if isinstance(key, str) and key else None

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """The object of a write's key; None where it names none."""
        rest, _, region = text.rpartition("@")
        bucket, _, key = rest.partition("/")
        return cls.of(bucket, key, region) if _REGION.fullmatch(region) else None


class Version(NamedTuple):
    """One version of an object, in a bucket of the region that is asked.

    Attributes:
        bucket: its name.
        key: of the object.
        version: its ``VersionId``, or that of a delete marker.
    """

    bucket: str
    key: str
    version: str
