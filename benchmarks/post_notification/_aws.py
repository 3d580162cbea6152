"""Clients of the emulators of AWS under the application: ministack, not AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from ._storage import Spec

#: The regions of the topologies: the writer's, and the reader's.
HOME, AWAY = "us-east-1", "eu-west-1"
#: More than there are threads that may ask at once.
_CONNECTIONS = 256
_ACCOUNT = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}


def client(service: str, spec: Spec, place: str) -> Any:  # noqa: ANN401 - boto3 has no annotations
    """A client of the region at *place*; the other region's server may be across the link."""
    return boto3.client(
        service,
        region_name=AWAY if place == "reader" else HOME,
        endpoint_url=url(spec, place),
        config=Config(max_pool_connections=_CONNECTIONS),
        **_ACCOUNT,
    )


def url(spec: Spec, place: str) -> str:
    """Where the server at *place* listens."""
    host, port = spec[place]
    return f"http://{host}:{port}"


def options(spec: Spec, place: str) -> dict[str, Any]:
    """What a shim at *place* takes: where the writer's region is, for its reader to ask."""
    reads_from = "replica" if place == "reader" else "primary"
    return {"reads_from": reads_from, "regions": {HOME: url(spec, "writer")}}
