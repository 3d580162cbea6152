"""What is posted: as the paper's load generator posts, and as DeathStarBench's does."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from typing import Literal

from ._graph import USERS, Friendship

Workload = Literal["paper", "deathstarbench"]
WORKLOADS: tuple[Workload, ...] = ("paper", "deathstarbench")
_CHARACTERS = 256
#: The paper draws authors among so many, of whom 962 exist: nobody follows them.
_STRANGERS = 1_000_000_000
_MENTIONS, _URLS, _MEDIA = 6, 6, 5
_URL_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Compose:
    """One request of an author.

    Attributes:
        user_id: the author.
        text: of the post.
        media: how many files the post has.
        readers: into whose home timelines it comes: followers and mentioned users.
    """

    user_id: int
    text: str
    media: int
    readers: tuple[int, ...]

    def fields(self) -> dict[str, str]:
        """The fields of the request."""
        return {
            "user_id": str(self.user_id),
            "username": username(self.user_id),
            "text": self.text,
            "media": str(self.media),
        }


class Authors:
    """Makes requests, the same ones from the same seed."""

    def __init__(self, workload: Workload, graph: list[Friendship], seed: int) -> None:
        """Post as *workload* does, over the friendships of *graph*."""
        self._workload = workload
        self.chance = random.Random(seed)
        self._friends: list[set[int]] = [set() for _ in range(USERS)]
        for one, other in graph:
            self._friends[one].add(other)
            self._friends[other].add(one)

    def next(self) -> Compose:
        """The next request."""
        chance = self.chance
        text = self._letters(_CHARACTERS)
        if self._workload == "paper":
            return Compose(chance.randrange(USERS, _STRANGERS), text, 0, ())
        author = chance.randrange(USERS)
        mentioned = [chance.randrange(USERS) for _ in range(chance.randint(1, _MENTIONS))]
        text += "".join(f" @{username(user)}" for user in mentioned)
        for _ in range(chance.randint(1, _URLS)):
            text += f" http://{self._letters(_URL_CHARACTERS)}"
        readers = tuple(sorted(self._friends[author] | set(mentioned)))
        return Compose(author, text, chance.randint(1, _MEDIA), readers)

    def user(self) -> int:
        """Somebody."""
        return self.chance.randrange(USERS)

    def reader(self, compose: Compose) -> int | None:
        """Somebody in whose home timeline the post comes, if anybody's."""
        return self.chance.choice(compose.readers) if compose.readers else None

    def gap_s(self, rate: float) -> float:
        """Until the next request, at *rate* a second: exponential, as of independent authors."""
        return self.chance.expovariate(rate)

    def _letters(self, count: int) -> str:
        return "".join(self.chance.choices(string.ascii_letters + string.digits, k=count))


def username(user_id: int) -> str:
    """A user's name."""
    return f"username_{user_id}"
