"""What the shims of AWS's stores have in common: a datastore, a region, its registration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from antipode import Status
from antipode.shim import Observation, ServerName, ServerShim, Unreachable

from .regions import RegionEndpoint

if TYPE_CHECKING:
    from antipode import Promise, WriteId
    from antipode.shim import Endpoint, Floor, OnRead, ReadsFrom

    from .botocore import Settings
    from .regions import Regions

#: Seconds for which what a region showed counts for further reads of the same request.
PROVED_S = 2.0
#: Seconds for which a poll that missed something counts for reads whose time is up.
RECENT_S = 0.05


class RegionShim(ServerShim):
    """One region of a datastore.

    Attributes:
        region: its name.
        regions: the library's own clients.
    """

    def __init__(
        self,
        datastore: str,
        settings: Settings,
        regions: Regions,
        *,
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """Adopt the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            settings: how to reach the client's region.
            regions: what polls it and the others; closed with this.
            reads_from: ``primary`` or ``replica``.
            on_read: ``merge`` or ``ignore``.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        super().__init__(datastore, server=settings.where, reads_from=reads_from, on_read=on_read)
        self.fences = False  # Each item has its own versions: no position stands for all writes.
        self.region = settings.region
        self._endpoint_url = settings.endpoint_url
        self.regions = regions
        self._last: tuple[float, frozenset[WriteId | Promise], Observation] | None = None

    @property
    def server_name(self) -> ServerName | None:
        """The region's address."""
        url = urlsplit(self._endpoint_url)
        return ServerName(self.system, url.hostname, url.port or 0) if url.hostname else None

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Poll the region; connects at the first poll."""
        del timeout_s
        return RegionEndpoint(self.regions)

    def close(self) -> None:
        """Unregister and close the library's own clients. Idempotent."""
        super().close()
        self.regions.close()

    def is_proved(self, held: Floor) -> bool:
        """Whether this region showed all that *held* demands, a moment ago."""
        return held.proved(self.region, within_s=PROVED_S)

    def observing(self, held: Floor) -> Observation:
        """One poll for what *held* demands; where its time is up, the last one, if it is recent.

        Reads that are answered stale, one after the other, need not pay for a poll each.
        """
        now_s = self.clock.monotonic()
        demanded: frozenset[WriteId | Promise] = frozenset([*held.writes, *held.promises])
        if held.left_s <= 0 and self._last is not None:
            at_s, known, observation = self._last
            if known == demanded and now_s - at_s < RECENT_S:
                return observation
        try:
            observation = self._observe(held)
        except Unreachable as error:  # Worth repeating, within the time of the read.
            return Observation(
                self.region,
                dict.fromkeys(held.writes, Status.NOT_YET),
                causes=dict.fromkeys(held.writes, str(error)),
                promises=dict.fromkeys(held.promises, Status.NOT_YET),
                promise_causes=dict.fromkeys(held.promises, str(error)),
            )
        self._last = now_s, demanded, observation
        return observation

    def _observe(self, held: Floor) -> Observation:
        if not held.promises:
            return self.regions.observe(held.writes)
        promised = self.regions.promised(held.promises)
        if not held.writes:
            return promised
        shown = self.regions.observe(held.writes)
        return replace(shown, promises=promised.promises, promise_causes=promised.promise_causes)
