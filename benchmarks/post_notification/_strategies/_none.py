"""No protection: write, notify, and read at the replica."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.post_notification._rpc import Payload
    from benchmarks.post_notification._storage import Face, Place

#: Runs a statement as the administrator of the server at a place; its rows.
Administer = Callable[[str, str], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Knobs:
    """What users of strategies must choose.

    Attributes:
        timeout_s: how long anything may be waited for.
        sleep_s: how long ``sleep`` sleeps before it reads.
        stick_s: how long after a write ``sticky`` reads at the primary.
    """

    timeout_s: float
    sleep_s: float
    stick_s: float


class Unprotected:
    """The application as it is; each method runs in the process of one of its services."""

    #: How the services use the post storage; the library runs in them unless this is ``plain``.
    face: ClassVar[Face] = "plain"
    #: Whether `follow` itself waits, with a barrier that can be timed.
    waits: ClassVar[bool] = False
    #: Whether the reader's region reads at the primary.
    far: ClassVar[bool] = False

    def __init__(self, client: Callable[[Place], Any], knobs: Knobs) -> None:
        """Use the post storage through *client*, which gives the client at a place."""
        self.client = client
        self.knobs = knobs

    def write(self, post_id: str, value: bytes | None) -> Payload:
        """In post-storage of the writer's region: write, or delete where there is no value.

        Returns:
            What the notification has to carry for `read`.
        """
        self.client("writer").write(post_id, value)
        return {}

    def read(self, post_id: str, notice: Payload) -> bytes | None:  # noqa: ARG002
        """In post-storage of the reader's region: read, knowing what the notification carried."""
        value: bytes | None = self.client("reader").read(post_id)
        return value

    def follow(self, notice: Payload, fetch: Callable[[], int]) -> int:  # noqa: ARG002
        """In follower-notify: the version that `read` finds, 0 for no post; *fetch* calls it."""
        return fetch()

    @classmethod
    def install(cls, administer: Administer) -> None:
        """Change the servers once, before any request."""

    @classmethod
    @contextmanager
    def arranged(cls, administer: Administer) -> Iterator[None]:  # noqa: ARG003
        """A block in which the servers are as the strategy needs them."""
        yield
