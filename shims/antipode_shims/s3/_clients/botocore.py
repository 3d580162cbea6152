"""Which client of boto3 or aiobotocore is one of S3."""

from __future__ import annotations

from typing import Any

from antipode_shims._aws import client_of
from antipode_shims._aws.botocore import botocore_module


def low_level(client: Any) -> Any:
    """The client of *client*, which may be a resource of boto3.

    Raises:
        ConfigurationError: it is no client of S3.
    """
    botocore_module("s3")
    return client_of(client, ("s3",), "a client, a resource, a Bucket or an Object of boto3 for S3")
