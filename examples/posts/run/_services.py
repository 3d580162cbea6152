"""The services as processes of their own: two of uvicorn, a consumer, a Celery worker."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ._regions import Regions

_LISTENING = r"running on (http://\S+)"
_WORKER = (
    *("celery", "-A", "examples.posts.eu_tasks", "worker", "--concurrency", "2"),
    *("--loglevel", "info", "--without-gossip", "--without-mingle"),
)


class Services:
    """All services, for the block: ready when it begins, ended when it does.

    Args:
        regions: where they run.
        mode: ``ANTIPODE_MODE`` of all of them.
        directory: for what they write.
    """

    def __init__(self, regions: Regions, *, mode: str, directory: Path) -> None:
        """Start nothing yet."""
        self._regions = regions
        self._mode = mode
        self._directory = directory
        self._stack = ExitStack()
        #: Where the API of the US listens, once it does.
        self.us_api = ""

    def __enter__(self) -> Self:
        """Start them.

        Raises:
            ServerFailed: one did not start; the message has the end of its log.
        """
        with self._stack:
            regions = self._regions
            eu = regions.eu(driver="mysql+pymysql")
            eu_api = self._launch("eu_api", _uvicorn("eu_api"), regions.eu(driver="mysql+aiomysql"))
            us_api = self._launch("us_api", _uvicorn("us_api"), regions.us())
            consumer = self._launch("eu_consumer", ("examples.posts.eu_consumer",), eu)
            eu["EU_API_URL"] = eu_api.await_line(_LISTENING)
            worker = self._launch("eu_tasks", _WORKER, eu)
            self.us_api = us_api.await_line(_LISTENING)
            consumer.await_line("(consuming)")
            worker.await_line(r" (ready)\.")
            regions.rabbitmq.wait_federated("geo.posts")
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop them, the last one first."""
        self._stack.close()

    def log(self, name: str) -> str:
        """What a service has written so far."""
        return _text(self._directory / f"{name}.out")

    def _launch(self, name: str, module: Sequence[str], environment: Mapping[str, str]) -> _Service:
        """Start a service, and do not wait for it."""
        shared = _inherited() | {"ANTIPODE_MODE": self._mode, "OTEL_SERVICE_NAME": name}
        service = _Service(name, module, {**shared, **environment}, self._directory)
        self._stack.callback(service.process.stop)
        service.process.launch()
        return service


class _Service:
    """One process, which says in its log when it is ready."""

    def __init__(
        self, name: str, module: Sequence[str], environment: Mapping[str, str], directory: Path
    ) -> None:
        self._log = directory / f"{name}.out"
        self._awaited = re.compile("")
        self.process = ServerProcess(
            name,
            [sys.executable, "-m", *module],
            directory=directory,
            ready=lambda: self._awaited.search(_text(self._log)) is not None,
            environment=environment,
        )

    def await_line(self, pattern: str) -> str:
        """Wait for what says that it is ready; the group of *pattern*.

        Raises:
            ServerFailed: it ended, or did not say so in time.
        """
        self._awaited = re.compile(pattern)
        self.process.await_ready()
        found = self._awaited.search(_text(self._log))
        assert found is not None
        return found[1]


def _uvicorn(name: str) -> tuple[str, ...]:
    """The arguments of an API, at a port that the system chooses."""
    return ("uvicorn", "--port", "0", "--no-access-log", f"examples.posts.{name}:app")


def _inherited() -> dict[str, str]:
    """What all services get from this process: its settings of Antipode, and its path."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("ANTIPODE_")}
    if "ANTIPODE_DRY_RUN_DIR" in settings:  # Services run elsewhere.
        settings["ANTIPODE_DRY_RUN_DIR"] = str(Path(settings["ANTIPODE_DRY_RUN_DIR"]).absolute())
    return settings | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
