"""The few calls to DynamoDB and its streams that a topology makes, by the standard library."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ServerFailed

if TYPE_CHECKING:
    from antipode_testing._address import Address

REQUEST_TIMEOUT_S = 10.0
_TARGETS = {"dynamodb": "DynamoDB_20120810", "streams": "DynamoDBStreams_20120810"}


class DynamoDBApi:
    """The JSON API of one region's emulator, over one connection. Not thread-safe.

    Args:
        address: where the emulator listens.
        region: which of its regions.
    """

    def __init__(self, address: Address, region: str) -> None:
        self.region = region
        self._connection = http.client.HTTPConnection(*address, timeout=REQUEST_TIMEOUT_S)
        signed = f"Credential=AKIAEXAMPLE/20260101/{region}/dynamodb/aws4_request"
        self._headers = {
            "Authorization": f"AWS4-HMAC-SHA256 {signed}, SignedHeaders=host, Signature=0",
            "Content-Type": "application/x-amz-json-1.0",
        }

    def call(self, operation: str, service: str = "dynamodb", /, **given: Any) -> dict[str, Any]:
        """Make one call.

        Raises:
            ServerFailed: the emulator refused it.
            OSError: it could not be reached.
        """
        headers = {**self._headers, "X-Amz-Target": f"{_TARGETS[service]}.{operation}"}
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
