"""What readers are shown, and when posts become visible: seen from outside of the library."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pymongo

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ._servers import Servers

_TIMEOUT_S = 90.0
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_LOOK_S = 0.002
#: Read of a timeline: of well-known users, many posts come at once.
_SHOWN = 100
_READERS = 64
_AGAIN_S = 0.02


class Edge:
    """Requests to an edge, over as many connections as are in use at once. Thread-safe."""

    def __init__(self, address: str) -> None:
        """Note where it is."""
        self._address = address
        self._idle: list[http.client.HTTPConnection] = []

    def get(self, path: str, fields: dict[str, str]) -> tuple[int, Any]:
        """Read.

        Returns:
            The status, and what the answer says: JSON, or the text of an error.

        Raises:
            OSError, HTTPException: the edge does not answer.
        """
        return self._ask("GET", f"{path}?{urlencode(fields)}")

    def post(self, path: str, fields: dict[str, str]) -> tuple[int, Any]:
        """Write; as `get`."""
        return self._ask("POST", path, urlencode(fields))

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = http.client.HTTPConnection(self._address, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, body, _FORM if body else {})
            with connection.getresponse() as response:
                content = response.read().decode()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        ok = response.status == http.client.OK
        return response.status, json.loads(content) if ok else content


class _Watcher:
    """Something that runs in a thread of its own inside of a block."""

    def __init__(self, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError


@dataclass(slots=True)
class Visibility:
    """When a post became visible at the secondary.

    Attributes:
        unseen_ns: when the last look began that did not show it; 0 for none.
        seen_ns: when the first one had ended that did; None for none so far.
    """

    unseen_ns: int = 0
    seen_ns: int | None = None


class Secondary(_Watcher):
    """Looks at MongoDB's secondary for posts that were stored, with a client of its own."""

    def __init__(self, servers: Servers) -> None:
        """Look at the reader's region."""
        super().__init__("secondary")
        host, port = servers.posts("eu")
        self._client: Any = pymongo.MongoClient(host, port, directConnection=True)
        self._posts = self._client["post"]["post"]
        self._lock = threading.Lock()
        self._sought: dict[int, Visibility] = {}
        self.found: dict[int, Visibility] = {}

    def seek(self, post: int) -> None:
        """Look for a post until it is there."""
        with self._lock:
            self.found[post] = self._sought[post] = Visibility()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_S):
            with self._lock:
                sought = dict(self._sought)
            if not sought:
                continue
            began_ns = time.monotonic_ns()
            shown = {each["_id"] for each in self._posts.find({"_id": {"$in": [*sought]}}, {"_id"})}
            ended_ns = time.monotonic_ns()
            for post, visibility in sought.items():
                if post not in shown:
                    visibility.unseen_ns = began_ns
                    continue
                visibility.seen_ns = ended_ns
                with self._lock:
                    del self._sought[post]
        self._client.close()


@dataclass(frozen=True, slots=True)
class Shown:
    """What a home timeline showed when it first named a post.

    Attributes:
        ended_ns: when the answer had come.
        readable: whether the post was among those that it showed.
    """

    ended_ns: int
    readable: bool


class Readers:
    """Followers in eu, each of whom reads a home timeline as soon as there is a new post in it."""

    def __init__(self) -> None:
        """Nobody reads before `read_at`."""
        self._edge = Edge("")
        self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="reader")
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._there: set[int] = set()
        self._expected: dict[int, int] = {}
        #: What each user was shown, by post.
        self.shown: defaultdict[int, dict[int, Shown]] = defaultdict(dict)

    def read_at(self, edge: str) -> None:
        """Read at *edge* from now on."""
        self._edge = Edge(edge)

    def there(self, post: int) -> None:
        """Say that a post was put into timelines."""
        with self._lock:
            if post in self._there:
                return
            self._there.add(post)
            user = self._expected.get(post)
        if user is not None:
            self._pool.submit(self._read, user, post)

    def expect(self, user: int, post: int) -> None:
        """Say who reads a post."""
        with self._lock:
            self._expected[post] = user
            there = post in self._there
        if there:
            self._pool.submit(self._read, user, post)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._over.set()
        self._pool.shutdown(cancel_futures=True)
        self._edge.close()

    def _read(self, user: int, post: int) -> None:
        """Read until an answer names the post: that one counts."""
        fields = {"user_id": str(user), "start": "0", "stop": str(_SHOWN)}
        while not self._over.is_set():
            status: int = 0
            timeline: dict[str, Any] = {}
            with suppress(OSError, http.client.HTTPException):
                status, timeline = self._edge.get("/home-timeline", fields)
            ended_ns = time.monotonic_ns()
            if status != http.client.OK or str(post) not in timeline["named"]:
                self._over.wait(_AGAIN_S)
                continue
            readable = any(each["post_id"] == str(post) for each in timeline["posts"])
            with self._lock:
                self.shown[user].setdefault(post, Shown(ended_ns, readable))
            return
