"""A real Prometheus, and the dashboard's queries as Grafana would send them."""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, reserving, started
from tests.integration._processes import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing._address import Address, ReservedPort

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "assets" / "grafana-dashboard.json"
JOB = "shop"
#: What Grafana puts in place of its variable: four scrapes, as it takes itself.
RATE_INTERVAL = "2s"
CONFIG = """\
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: JOB
    static_configs: [{targets: ["TARGET"]}]
"""


@dataclass(frozen=True)
class Query:
    """One query of a panel, with the legend of its series."""

    panel: int
    title: str
    text: str
    legend: str


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard, rows included."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def queries() -> list[Query]:
    """Every query of the dashboard, its variables replaced."""
    return [
        Query(panel["id"], panel["title"], replaced(target["expr"]), target["legendFormat"])
        for panel in panels()
        for target in panel.get("targets", ())
    ]


def replaced(query: str, job: str = ".*") -> str:
    """*query* without variables, of the services that *job* matches."""
    return query.replace("$__rate_interval", RATE_INTERVAL).replace("$job", job)


class Prometheus:
    """A server that scrapes one service twice a second."""

    def __init__(self, address: Address) -> None:
        self._url = f"http://{address.host}:{address.port}"

    def ready(self) -> bool:
        """Whether it answers."""
        with _opened(f"{self._url}/-/ready") as answer:
            return bool(answer.status == 200)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with _opened(f"{self._url}/api/v1/{path}?{query}") as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> list[float]:
        """The value of each series that *query* has now, numbers alone."""
        found = [float(each["value"][1]) for each in self.ask("query", query=query)["result"]]
        return [value for value in found if value == value]  # noqa: PLR0124 - NaN: no rate yet


@contextmanager
def prometheus() -> Iterator[Prometheus]:
    """Prometheus and the service that it scrapes, both processes of their own."""
    executable = find_executable("prometheus", install="tools/fetch_debian.sh .stores prometheus")

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        address, target = ports["client"].address, ports["service"].address
        directory = make_directory("prometheus")
        scraped = CONFIG.replace("JOB", JOB).replace("TARGET", f"{target.host}:{target.port}")
        (directory / "prometheus.yml").write_text(scraped, encoding="utf-8")
        service = ServerProcess(
            "service",
            [sys.executable, "-m", "tests.end_to_end._dashboard_service", str(target.port)],
            directory=directory,
            ready=lambda: _answers(target),
            environment=environment({"PYTHONPATH": f"{ROOT}:{ROOT / 'shims'}:{ROOT / 'testing'}"}),
        )
        process = ServerProcess(
            "prometheus",
            [
                str(executable),
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address={address.host}:{address.port}",
            ],
            directory=directory,
            ready=Prometheus(address).ready,
        )
        return NativeServer(directory, ports, process, data=(), companions=(service,))

    server = started(reserving(("client", "service"), build))
    try:
        yield Prometheus(server.address)
    finally:
        server.close()


def _answers(address: Address) -> bool:
    with _opened(f"http://{address.host}:{address.port}/metrics") as answer:
        return bool(answer.status == 200)


def _opened(url: str) -> Any:
    return urllib.request.urlopen(url, timeout=30)  # noqa: S310 - of a server that we started
