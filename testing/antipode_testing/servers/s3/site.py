"""One region of S3 on an emulator, ministack, which copies what is written to another region.

A program, run as ``python -m antipode_testing.servers.s3.site``, with the address of the other
region in ``ANTIPODE_S3_TARGET``. The emulator's own replication is of one process, at once, and
with other versions. This one does what AWS does: later, in order, and with the same ``VersionId``.
It uses what is private in ministack, whose release is pinned.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import threading
import time
from collections import deque
from typing import Any
from urllib.parse import parse_qsl

from ministack import app as emulator
from ministack.services import s3

#: Paths that are ours; no bucket is called so.
PREFIX = "/_antipode/"
RETRY_S, REQUEST_TIMEOUT_S, IDLE_S = 0.02, 10.0, 0.2
_NO_BUCKET = 404
_plain, _serve = s3._record_object_version, emulator.app  # noqa: SLF001 - see above
_plain_marker = s3._record_delete_marker  # noqa: SLF001


class Site:
    """What a region copies, and what it takes.

    Args:
        target: host and port of the other region; None where nothing is copied.
    """

    def __init__(self, target: tuple[str, int] | None) -> None:
        self.lag_s = 0.0
        self.held = False
        self._target = target
        self._outgoing: deque[tuple[float, str, str, dict[str, Any]]] = deque()
        self._changed = threading.Condition()

    def start(self) -> None:
        """Follow the writes of the emulator, and copy them where there is a target."""
        s3._record_object_version = self._recorded  # noqa: SLF001
        s3._record_delete_marker = self._marked  # noqa: SLF001
        if self._target is not None:
            threading.Thread(target=self._run, daemon=True).start()

    def _recorded(self, bucket: str, key: str, prior: Any, made: dict[str, Any], data: Any) -> Any:
        copies = self._target is not None and s3._bucket_versioning.get(bucket) == "Enabled"  # noqa: SLF001
        if copies:
            made["replication_status"] = "PENDING"
        version = _plain(bucket, key, prior, made, data)
        if copies:
            self._copy(bucket, key)
        return version

    def _marked(self, bucket: str, key: str, prior: Any) -> Any:
        version = _plain_marker(bucket, key, prior)
        if self._target is not None:
            self._copy(bucket, key)
        return version

    def _copy(self, bucket: str, key: str) -> None:
        self._add(bucket, key, s3._object_versions[bucket, key][-1])  # noqa: SLF001

    def _add(self, bucket: str, key: str, entry: dict[str, Any]) -> None:
        with self._changed:
            self._outgoing.append((time.monotonic(), bucket, key, entry))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._is_due():
                    self._changed.wait(self._pause_s())
                    continue
                _, bucket, key, entry = self._outgoing[0]
            try:
                status = self._send(bucket, key, entry) if _is_there(bucket, key, entry) else 0
            except (OSError, http.client.HTTPException):
                time.sleep(RETRY_S)
                continue
            self._settle(bucket, key, entry, "FAILED" if status == _NO_BUCKET else "COMPLETED")
            with self._changed:
                self._outgoing.popleft()

    def _is_due(self) -> bool:
        return bool(self._outgoing) and not self.held and self._pause_s() <= 0

    def _pause_s(self) -> float:
        if not self._outgoing or self.held:
            return IDLE_S
        return self._outgoing[0][0] + self.lag_s - time.monotonic()

    def _send(self, bucket: str, key: str, entry: dict[str, Any]) -> int:
        assert self._target is not None
        data = entry.get("data") or b""
        sent = {**entry, "data": base64.b64encode(data).decode(), "replication_status": "REPLICA"}
        connection = http.client.HTTPConnection(*self._target, timeout=REQUEST_TIMEOUT_S)
        try:
            body = json.dumps({"bucket": bucket, "key": key, "entry": sent})
            connection.request("POST", f"{PREFIX}copy", body)
            return connection.getresponse().status
        finally:
            connection.close()

    def _settle(self, bucket: str, key: str, entry: dict[str, Any], status: str) -> None:
        entry["replication_status"] = status
        newest = s3._buckets.get(bucket, {}).get("objects", {}).get(key)  # noqa: SLF001
        if newest is not None and newest.get("version_id") == entry["version_id"]:
            newest["replication_status"] = status

    def take(self, bucket: str, key: str, entry: dict[str, Any]) -> int:
        """Take a version that was copied; the status to answer with."""
        found = s3._buckets.get(bucket)  # noqa: SLF001
        if found is None or s3._bucket_versioning.get(bucket) != "Enabled":  # noqa: SLF001
            return _NO_BUCKET
        versions = s3._object_versions.setdefault((bucket, key), [])  # noqa: SLF001
        if any(each["version_id"] == entry["version_id"] for each in versions):
            return 200
        for each in versions:
            each["is_latest"] = False
        entry = {**entry, "is_latest": True, "data": base64.b64decode(entry["data"])}
        versions.append(entry)
        if entry.get("is_delete_marker"):
            found["objects"].pop(key, None)
        else:
            found["objects"][key] = s3._object_record_from_version(entry)  # noqa: SLF001
        return 200

    def forget(self) -> None:
        """Throw all objects away, as if they had never come."""
        for name, bucket in s3._buckets.items():  # noqa: SLF001
            bucket["objects"].clear()
            for place in [each for each in s3._object_versions if each[0] == name]:  # noqa: SLF001
                del s3._object_versions[place]  # noqa: SLF001

    def copy_anew(self) -> None:
        """Copy all that there is once more."""
        for (bucket, key), versions in list(s3._object_versions.items()):  # noqa: SLF001
            for entry in list(versions):
                self._add(bucket, key, entry)

    def control(self, given: dict[str, str]) -> dict[str, Any]:
        """Change what *given* says; what is still to be copied."""
        with self._changed:
            self.lag_s = float(given.get("lag_s", self.lag_s))
            self.held = given.get("held", str(self.held)) == "True"
            self._changed.notify()
            return {"pending": len(self._outgoing)}

    def answer(self, path: str, given: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """The answer to a request that is ours."""
        if path == "copy":
            return self.take(**json.loads(body)), {}
        if path == "forget":
            self.forget()
        elif path == "again":
            self.copy_anew()
        return 200, self.control(given)


def _is_there(bucket: str, key: str, entry: dict[str, Any]) -> bool:
    """Whether a version was not deleted for good before its turn came."""
    versions = s3._object_versions.get((bucket, key), ())  # noqa: SLF001
    return any(each is entry for each in versions)


def serving(site: Site) -> Any:
    """The emulator, with the paths of *site*."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await _serve(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        given = dict(parse_qsl(scope["query_string"].decode()))
        status, told = site.answer(scope["path"].removeprefix(PREFIX), given, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    return app


def main() -> None:
    """Serve one region."""
    host, _, port = os.environ.get("ANTIPODE_S3_TARGET", "").rpartition(":")
    site = Site((host, int(port)) if host else None)
    site.start()
    emulator.app = serving(site)
    emulator.main()


if __name__ == "__main__":
    main()
