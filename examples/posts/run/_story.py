"""Posts one after the other, and what the EU saw of each."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

import antipode
from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._services import Services

_NOTIFIED = re.compile(r"notified (\{.*\})")
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Seen:
    """What became of one post.

    Attributes:
        written: the lineage in the response of the API of the US.
        title: that the task read.
        number: how many posts of the author it read, and how many there were.
        page: the status of the response of the API of the EU.
        views: how many views of the post the task read, after that response.
        lineage: of the task when it was done.
        took_s: seconds from the author's request until the task was done.
    """

    written: antipode.Lineage
    title: str | None
    number: tuple[int | None, int]
    page: int
    views: int | None
    lineage: antipode.Lineage
    took_s: float

    @property
    def stale(self) -> tuple[str, ...]:
        """Which reads came too early."""
        read, there = self.number
        early = {
            "post": self.title is None,
            "counter": read is None or read < there,
            "page": self.page != httpx.codes.OK,
            "views": not self.views,
        }
        return tuple(name for name, is_early in early.items() if is_early)


def tell(services: Services, posts: int) -> Iterator[Seen]:
    """Send *posts* posts, each when the EU is done with the one before."""
    with httpx.Client(base_url=services.us_api) as author:
        for number in range(posts):
            draft = {"author": "ada", "title": f"Post {number}"}
            yield _send(author, services, draft)


def _send(author: httpx.Client, services: Services, draft: dict[str, str]) -> Seen:
    """Send one post, and wait until the EU is done with it."""
    since_s = time.monotonic()
    response = author.post("/posts", json=draft).raise_for_status()
    post = response.json()

    def notified() -> bool:
        return post["id"] in _notifications(services)

    wait_until(notified, what=f"the notification of post {post['id']}", timeout_s=_TIMEOUT_S)
    took_s = time.monotonic() - since_s
    notification = _notifications(services)[post["id"]]
    return Seen(
        written=antipode.deserialize(response.headers["antipode-lineage"]),
        title=notification["title"],
        number=(notification["number"], post["number"]),
        page=notification["page"],
        views=notification["views"],
        lineage=antipode.deserialize(notification["lineage"]),
        took_s=took_s,
    )


def _notifications(services: Services) -> dict[int, dict[str, Any]]:
    """What the tasks logged, by post."""
    found = map(json.loads, _NOTIFIED.findall(services.log("eu_tasks")))
    return {each["id"]: each for each in found}
