"""The library's own clients: one for each region that is asked, and the polls that they make."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from antipode import ConfigurationError
from antipode.shim import Endpoint, Observation, Unreachable

from .botocore import own_call, passes

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping

    from antipode import Promise, WriteId
    from antipode.shim import Wake

    from .botocore import Settings

#: The least pause between two polls of a barrier, in seconds: each is a request that costs money.
POLL_S = 0.01


class Regions(ABC):
    """The clients by which regions are polled. Thread-safe.

    Args:
        settings: of the application's client.
        others: endpoint URLs of further regions by their names, where they are not AWS's own.
    """

    #: As botocore names it.
    service: ClassVar[str]

    def __init__(self, settings: Settings, others: Mapping[str, str]) -> None:
        self.here = settings.region
        self._settings = settings
        self._urls = {**others, self.here: settings.endpoint_url}
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False

    @abstractmethod
    def look(self, writes: Collection[WriteId]) -> Generator[Any, Any, Observation]:
        """One poll as a conversation: yields questions, each with a `region`, empty for this one.

        It is sent the answer, or the error why another region gave none.
        """

    @abstractmethod
    def read(self, client: Any, question: Any) -> object:
        """The answer to *question* by the client of its region."""

    def observe(self, writes: Collection[WriteId]) -> Observation:
        """What this region shows of *writes*.

        Raises:
            Unreachable: it was throttled, or could not be reached.
            Exception: as botocore does where polling again cannot help.
        """
        return self._converse(self.look(writes))

    def promised(self, promises: Collection[Promise]) -> Observation:
        """What this region shows of *promises*, of a store that has records of them.

        Raises:
            Unreachable: as :meth:`observe`.
            Exception: as there.
        """
        return self._converse(self.look_for(promises))

    def look_for(self, promises: Collection[Promise]) -> Generator[Any, Any, Observation]:
        """As :meth:`look`, for *promises*."""
        raise NotImplementedError

    def _converse(self, steps: Generator[Any, Any, Observation]) -> Observation:
        try:
            question = next(steps)
            while True:
                question = steps.send(self._answer(question))
        except StopIteration as end:
            observation: Observation = end.value
            return observation

    def _answer(self, question: Any) -> object:
        region = question.region or self.here
        try:
            with own_call(), self._lent(region) as client:
                return self.read(client, question)
        except Exception as error:
            if region != self.here:
                return error
            if passes(error):
                raise Unreachable(str(error)) from error
            raise

    @contextmanager
    def _lent(self, region: str) -> Iterator[Any]:
        """The client of *region*. One that was closed meanwhile may have connected again since."""
        client = self._client(region)
        try:
            yield client
        finally:
            if self._closed:
                client.close()

    def _client(self, region: str) -> Any:
        with self._lock:
            if self._pid != os.getpid():  # The parent keeps its connections.
                self._clients, self._pid = {}, os.getpid()
            found = self._clients.get(region)
            if found is None:
                url = self._urls.get(region)
                if url is None and not self._settings.is_aws:
                    msg = f"say where it is: regions={{{region!r}: its endpoint URL}}"
                    raise ConfigurationError(msg)
                found = self._settings.connect(self.service, region, url)
                if not self._closed:
                    self._clients[region] = found
            return found

    def close(self) -> None:
        """Close every client. Idempotent."""
        with self._lock:
            self._closed = True
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


class RegionEndpoint(Endpoint):
    """Where barriers poll a region."""

    def __init__(self, regions: Regions) -> None:
        """Use the clients of *regions*, which its shim closes."""
        self._regions = regions

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once.

        Raises:
            Unreachable: as :meth:`Regions.observe`.
            Exception: as there.
        """
        del timeout_s  # Each request has its own, shorter limit.
        return self._regions.observe(writes)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*.

        Raises:
            Unreachable: as :meth:`Regions.observe`.
            Exception: as there.
        """
        del timeout_s  # As above.
        return self._regions.promised(promises)

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait until *wake*, for *timeout_s* seconds, but no less than the polling interval."""
        wake.wait(max(timeout_s, POLL_S))

    def close(self) -> None:
        """Leave the clients to their shim."""
