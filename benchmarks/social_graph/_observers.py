"""What readers are shown, and when posts become visible: seen from outside of the library."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pymongo
import redis

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ._servers import Servers

_TIMEOUT_S = 10.0
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_LOOK_S = 0.002
#: Read of a timeline: of well-known users, many posts come at once.
_SHOWN = 100
_PREFIX = "__keyspace@0__:home-timeline:"


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


class Readers(_Watcher):
    """Reads the home timelines of some users in eu, each as soon as something changed in it."""

    def __init__(self, servers: Servers, edge: str) -> None:
        """Read at *edge*."""
        super().__init__("readers")
        host, port = servers.redis["eu"]
        self._edge = Edge(edge)
        client: Any = redis.Redis(host, port)
        self._client = client
        self._changes = client.pubsub(ignore_subscribe_messages=True)
        self._changes.psubscribe(f"{_PREFIX}*")
        self._lock = threading.Lock()
        self._watched: Counter[int] = Counter()
        self._expected: defaultdict[int, set[int]] = defaultdict(set)
        #: What each user was shown, by post.
        self.shown: defaultdict[int, dict[int, Shown]] = defaultdict(dict)

    def watch(self, user: int) -> None:
        """Read that user's home timeline from now on, until it has shown what is expected."""
        with self._lock:
            self._watched[user] += 1

    def expect(self, user: int, post: int) -> None:
        """Say for which post a user was watched."""
        with self._lock:
            self._expected[user].add(post)
            self._settle(user)

    def _settle(self, user: int) -> None:
        """Watch a user no longer for what was shown."""
        seen = self._expected[user] & self.shown[user].keys()
        self._expected[user] -= seen
        self._watched[user] -= len(seen)

    def _run(self) -> None:
        while not self._over.is_set():
            change: Any = self._changes.get_message(timeout=0.05)
            if change is None:
                continue
            user = int(change["channel"].decode().removeprefix(_PREFIX))
            with self._lock:
                watched = self._watched[user]
            if watched > 0:
                self._read(user)
        self._changes.close()
        self._client.close()
        self._edge.close()

    def _read(self, user: int) -> None:
        fields = {"user_id": str(user), "start": "0", "stop": str(_SHOWN)}
        status: int | None = None
        while status != http.client.OK and not self._over.is_set():
            with suppress(OSError, http.client.HTTPException):
                status, timeline = self._edge.get("/home-timeline", fields)
        if status != http.client.OK:
            return
        ended_ns = time.monotonic_ns()
        readable = {int(post["post_id"]) for post in timeline["posts"]}
        with self._lock:
            for post in map(int, timeline["named"]):
                self.shown[user].setdefault(post, Shown(ended_ns, post in readable))
            self._settle(user)
