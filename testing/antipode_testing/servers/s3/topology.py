"""Two regions of S3: emulators, of which the first copies to the second."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlencode

from antipode_testing._errors import ServerFailed
from antipode_testing.servers.aws_json import signed
from antipode_testing.servers.emulated import AWAY, HOME, EmulatedTopology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address

REQUEST_TIMEOUT_S = 10.0
#: A bucket that every topology has, in both regions.
BUCKET = "posts"
_LOCATED = (
    "<CreateBucketConfiguration>"
    f"<LocationConstraint>{AWAY}</LocationConstraint>"
    "</CreateBucketConfiguration>"
)
_VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


class S3Topology(EmulatedTopology):
    """Two regions of S3, on two emulators (ministack), not on AWS.

    What is written to a bucket of ``us-east-1`` is copied to the bucket of the same name in
    ``eu-west-1``, with the same ``VersionId``, delete markers too. Lag delays that alone.

    Args:
        lag_ms: the replication lag to begin with, and to return to at `reset`.
        config: further environment variables of both emulators.
        provider: what runs the servers; None: this machine, for an emulator is a Python package.

    Raises:
        ServerMissing: on `start`, if the emulator is not installed.
    """

    store: ClassVar[str] = "s3"
    services: ClassVar[str] = "s3"
    no_failover: ClassVar[str] = "a bucket of S3 has no second region to go to"

    _is_paused = _is_cut = False

    def _begin(self) -> None:
        self._is_paused = self._is_cut = False
        target = self._start_server(AWAY).address
        self._start_server(HOME, ANTIPODE_S3_TARGET=f"{target.host}:{target.port}")
        self.create_bucket(BUCKET)

    def _undisturbed(self) -> None:
        self._is_paused = self._is_cut = False
        self._hold()
        self.set_lag(0.0)

    def create_bucket(self, name: str, *, versioned: bool = True) -> None:
        """Create a bucket in both regions.

        Args:
            name: of the bucket.
            versioned: whether it keeps versions; else nothing is copied.

        Raises:
            ServerFailed: the emulator refused it.
        """
        for region, server in self._servers.items():
            self._put(server.address, region, f"/{name}", "" if region == HOME else _LOCATED)
            if versioned:
                self._put(server.address, region, f"/{name}?versioning", _VERSIONED)

    def set_lag(self, ms: float) -> None:
        """Delay what the second region gets of the first by this many milliseconds."""
        self._control("lag", lag_s=str(ms / 1000))

    def pause(self) -> None:
        """Hold replication."""
        self._is_paused = True
        self._hold()

    def resume(self) -> None:
        """Let what `pause` held go on."""
        self._is_paused = False
        self._hold()

    def cut(self) -> None:
        """Partition the regions: what is written waits for `heal`."""
        self._is_cut = True
        self._hold()

    def heal(self) -> None:
        """End the partition."""
        self._is_cut = False
        self._hold()

    def reseed(self) -> None:
        """Throw the second region's objects away and copy the first region's."""
        self.forget()
        self._control("again")

    def forget(self) -> None:
        """Throw the second region's objects away, as if they had never come, until `reseed`."""
        self._control("forget", of=AWAY)

    def _settled(self) -> bool:
        return self._control("state") == 0

    def _hold(self) -> None:
        self._control("hold", held=str(self._is_paused or self._is_cut))

    def _control(self, does: str, /, of: str = HOME, **given: str) -> int:
        """Have a site do something; how many copies are still to be made."""
        path = f"/_antipode/{does}?{urlencode(given)}"
        return int(json.loads(_request(self._server(of).address, "POST", path, {}))["pending"])

    def _put(self, address: Address, region: str, path: str, body: str = "") -> None:
        _request(address, "PUT", path, signed(region, "s3"), body)


def _request(
    address: Address, method: str, path: str, headers: Mapping[str, str], body: str = ""
) -> bytes:
    """The content of an answer.

    Raises:
        ServerFailed: there was none, or a refusal.
    """
    connection = HTTPConnection(*address, timeout=REQUEST_TIMEOUT_S)
    try:
        connection.request(method, path, body, dict(headers))
        reply = connection.getresponse()
        content = reply.read()
    except (OSError, HTTPException) as error:
        raise ServerFailed(f"{method} {path}: {error}") from error
    finally:
        connection.close()
    if reply.status >= 300:  # noqa: PLR2004 - of HTTP
        text = content[:200].decode(errors="replace")
        raise ServerFailed(f"ministack refused {method} {path}: {reply.status} {text}")
    return content
