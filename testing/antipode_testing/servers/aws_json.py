"""The few calls to an emulator of AWS that topologies make, by the standard library."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ServerFailed

if TYPE_CHECKING:
    from antipode_testing._address import Address

REQUEST_TIMEOUT_S = 10.0
_TARGETS = {
    "dynamodb": ("DynamoDB_20120810", "dynamodb"),
    "streams": ("DynamoDBStreams_20120810", "dynamodb"),
    "sqs": ("AmazonSQS", "sqs"),
}


def signed(region: str, service: str) -> dict[str, str]:
    """What an emulator takes for a signature: it tells the region and the service by it."""
    scope = f"Credential=AKIAEXAMPLE/20260101/{region}/{service}/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"}


class JsonApi:
    """The JSON API of one region's emulator, over one connection. Not thread-safe.

    Args:
        address: where the emulator listens.
        region: which of its regions.
    """

    def __init__(self, address: Address, region: str) -> None:
        self.region = region
        self._connection = http.client.HTTPConnection(*address, timeout=REQUEST_TIMEOUT_S)

    def call(self, operation: str, service: str = "dynamodb", /, **given: Any) -> dict[str, Any]:
        """Make one call.

        Raises:
            ServerFailed: the emulator refused it.
            OSError: it could not be reached.
        """
        target, signed_for = _TARGETS[service]
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"{target}.{operation}",
            **signed(self.region, signed_for),
        }
        try:
            self._connection.request("POST", "/", json.dumps(given), headers)
            reply = self._connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise OSError(str(error)) from error
        if reply.status >= http.HTTPStatus.BAD_REQUEST:
            text = content[:200].decode(errors="replace")
            raise ServerFailed(f"ministack refused {operation}: {reply.status} {text}")
        found: dict[str, Any] = json.loads(content)
        return found

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._connection.close()
