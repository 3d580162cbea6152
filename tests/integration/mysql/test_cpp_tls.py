"""C++ over TLS, to servers that let in nobody without a certificate."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from antipode_testing import MariaDBTopology, MySQLTopology
from tests.agent.client import AgentProcess, RemoteAntipode, RemoteShim, StoreError
from tests.conformance._agents import command
from tests.contract._servers import described
from tests.contract.test_mysql import prepare
from tests.integration._certificates import certificates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

TIMEOUT_S = 20.0
LAG_MS = 100
TOPOLOGIES = {"mysql": MySQLTopology, "mariadb": MariaDBTopology}


class Servers:
    """A primary and its replica, and an agent of C++."""

    def __init__(self, store: str, folder: Path, stack: ExitStack) -> None:
        self.store = store
        self.tls = certificates(folder / "servers")
        self.stranger = certificates(folder / "stranger")
        config = {f"ssl-{name}": file for name, file in self.tls.items()}
        self.topology = stack.enter_context(TOPOLOGIES[store](config=config))
        prepare(self.topology)
        self.topology.execute(f"ALTER USER {self.topology.user}@'%' REQUIRE X509")
        self.topology.wait_replicated()
        self.antipode = RemoteAntipode(stack.enter_context(AgentProcess(command("cpp"))))
        self._stack = stack

    def opened(self, address: Any, tls: dict[str, str] | None, **options: Any) -> RemoteShim:
        """A shim, or a client, of one server."""
        server = described(self.store, self.topology, address)
        if tls is not None:
            server["tls"] = tls
        made = RemoteShim(self.antipode, self.store, "posts", server, **options)
        return self._stack.enter_context(closing(made))


@pytest.fixture(params=[pytest.param(each, marks=pytest.mark.store(each)) for each in TOPOLOGIES])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    """MySQL and MariaDB in turn."""
    with ExitStack() as stack:
        yield Servers(request.param, tmp_path, stack)


def test_servers_that_require_certificates(servers: Servers) -> None:
    """Writes, barriers and held reads work over TLS; without it, or with a stranger's, none do."""
    topology = servers.topology
    topology.set_lag(LAG_MS)
    far = servers.opened(topology.replica, servers.tls, reads_from="replica", client=True)
    near = servers.opened(topology.primary, servers.tls)
    for key, at in (("1", "now"), ("2", "read")):
        with servers.antipode.scope():
            near.write(key, b"hello")
            servers.antipode.barrier(timeout=TIMEOUT_S, at=at)
            assert far.read(key)[0] == b"hello"
    for tls in (None, {"ca": servers.tls["ca"]}, {**servers.tls, "ca": servers.stranger["ca"]}):
        with pytest.raises(StoreError):
            servers.opened(topology.replica, tls, reads_from="replica").read("1")
