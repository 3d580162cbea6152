"""The few calls to RabbitMQ's management API that a topology makes, by the standard library."""

from __future__ import annotations

import base64
import http.client
import json
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ServerFailed

if TYPE_CHECKING:
    from antipode_testing._address import Address

REQUEST_TIMEOUT_S = 10.0
# A new broker's own account, which it accepts from the loopback interface alone.
USER = "guest"
PASSWORD = "guest"  # noqa: S105 - the same on every new broker, and no secret


class Management:
    """The management API of one broker, on its default virtual host."""

    def __init__(self, address: Address) -> None:
        self._address = address
        token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}

    def get(self, path: str) -> Any:
        """Read one resource below ``/api/``."""
        return json.loads(self._request("GET", path, None))

    def put(self, path: str, value: object) -> None:
        """Write one resource below ``/api/``."""
        self._request("PUT", path, json.dumps(value))

    def delete(self, path: str) -> None:
        """Delete one resource below ``/api/``."""
        self._request("DELETE", path, None)

    def _request(self, method: str, path: str, body: str | None) -> bytes:
        connection = http.client.HTTPConnection(*self._address, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request(method, f"/api/{path}", body, self._headers)
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        if reply.status >= http.HTTPStatus.BAD_REQUEST:
            raise ServerFailed(
                f"RabbitMQ at {self._address} refused {method} {path}: {reply.status}"
                f" {content[:200].decode(errors='replace')}"
            )
        return content
