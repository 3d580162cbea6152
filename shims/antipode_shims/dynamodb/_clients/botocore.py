"""Which client of boto3 or aiobotocore is one of DynamoDB."""

from __future__ import annotations

from typing import Any

from antipode_shims._aws import client_of
from antipode_shims._aws.botocore import botocore_module


def low_level(client: Any) -> Any:
    """The client of *client*, which may be a resource of boto3.

    Raises:
        ConfigurationError: it is no client of DynamoDB.
    """
    botocore_module()
    return client_of(client, ("dynamodb",), "a client, a resource or a Table of boto3 for DynamoDB")
