"""Servers in containers do under a topology what processes do, and leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from antipode import ConfigurationError
from antipode_testing import (
    ComposeProvider,
    ContainerProvider,
    RedisTopology,
    ServerMissing,
    wait_until,
)
from antipode_testing._provider import default_provider
from antipode_testing.containers.guard import LABEL_NAME, SESSION
from antipode_testing.containers.recipes import IMAGES, image_of
from benchmarks.post_notification._stack import _PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
REQUIRE_VARIABLE = "ANTIPODE_REQUIRE_CONTAINERS"
TIMEOUT_S = 30.0
APPLICATIONS = ("TRAIN_TICKET_", "SOCIAL_GRAPH_")
LEAVES_BY_FORCE = """
import os, sys
from antipode_testing import ContainerProvider
ContainerProvider().start("redis", "orphan", {})
from antipode_testing.containers.guard import SESSION
print(SESSION, flush=True)
sys.stdin.read()
"""


def containers(session: str = SESSION) -> list[str]:
    """The ids of the containers that a process of ours has."""
    label = f"label={LABEL_NAME}={session}"
    listed = subprocess.run(
        ["docker", "ps", "--all", "--quiet", "--filter", label],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine with an image of Redis; else a skip, or a failure where it is required."""
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    try:
        ContainerProvider().start("redis", "first", {}).close()
    except ServerMissing as error:
        if os.environ.get(REQUIRE_VARIABLE):
            pytest.fail(f"{error} ({REQUIRE_VARIABLE} is set)", pytrace=False)
        pytest.skip(f"containers: {error}")


@pytest.fixture
def topology(engine: None) -> Iterator[RedisTopology]:
    with RedisTopology(provider=ContainerProvider()) as pair:
        yield pair


def test_lag_and_faults_reach_containers(topology: RedisTopology) -> None:
    """A replica in a container lags, freezes, and comes back with the primary's data."""
    with redis.Redis(*topology.primary) as primary:
        topology.pause()
        primary.set("held", "1")
        with redis.Redis(*topology.replica) as replica:
            assert replica.get("held") is None
            topology.resume()
            topology.wait_replicated()
            assert replica.get("held") == b"1"
    topology.suspend_replica()
    with redis.Redis(*topology.replica, socket_timeout=0.2) as frozen:
        with pytest.raises(redis.exceptions.TimeoutError):
            frozen.ping()
        topology.resume_replica()
    topology.reseed()
    with redis.Redis(*topology.replica) as replica:
        assert replica.get("held") == b"1"


def test_a_restart_keeps_the_data_and_a_wipe_does_not(engine: None) -> None:
    """Killed, a container starts again with its data at its address; wiped, with none."""
    server = ContainerProvider().start("redis", "kept", {"appendonly": "yes"})
    try:
        with redis.Redis(*server.address) as client:
            client.set("kept", "1")
        server.kill()
        assert not server.running
        server.restart()
        with redis.Redis(*server.address) as client:
            assert client.get("kept") == b"1"
        server.suspend()
        assert server.running
        server.restart(graceful=False, wipe=True)
        with redis.Redis(*server.address) as client:
            assert client.get("kept") is None
        assert server.run_tool("redis-server", "--version").startswith("Redis server")
    finally:
        server.close()


def test_a_closed_topology_leaves_no_container(engine: None) -> None:
    """Two containers while it runs, none afterwards."""
    with RedisTopology(provider=ContainerProvider()):
        assert len(containers()) == 2
    assert containers() == []


def test_a_killed_interpreter_leaves_no_container(engine: None) -> None:
    """No handler runs in a process that is killed: its containers are removed nevertheless."""
    with subprocess.Popen(
        [sys.executable, "-c", LEAVES_BY_FORCE],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        session = child.stdout.readline().strip()
        assert len(containers(session)) == 1
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: not containers(session), what="its containers to go", timeout_s=TIMEOUT_S)


def test_a_missing_image_says_what_to_do(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the image and the verb that builds a stand-in."""
    monkeypatch.setenv("ANTIPODE_REDIS_IMAGE", "localhost/antipode-nowhere:1")
    with pytest.raises(ServerMissing, match=r"antipode-nowhere:1.*make containers"):
        ContainerProvider().start("redis", "nowhere", {})
    assert containers() == []


def test_no_engine_is_a_missing_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an engine tests are skipped like those of a server that is not installed."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ServerMissing, match="make containers"):
        ContainerProvider().start("redis", "first", {})


def test_a_store_that_the_stack_has_not_is_a_missing_server() -> None:
    """A topology that cannot take the stack over is skipped, and says why."""
    for store, name in (("mariadb", "primary"), ("redis", "replica-1")):
        with pytest.raises(ServerMissing, match=r"docker-compose\.yml"):
            ComposeProvider().start(store, name, {})


def test_a_setting_that_the_stack_cannot_take_is_a_missing_server() -> None:
    """A test that needs it is skipped, instead of running without it."""
    settings = {"replSet": "antipode", "setParameter.ttlMonitorEnabled": "false"}
    with pytest.raises(ServerMissing, match=r"without setParameter\.ttlMonitorEnabled"):
        ComposeProvider().start("mongodb", "primary", settings)


def test_the_environment_chooses_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ANTIPODE_PROVIDER` names it; a name that does not exist is an error, not the default."""
    monkeypatch.setenv("ANTIPODE_PROVIDER", "containers")
    assert isinstance(default_provider(), ContainerProvider)
    monkeypatch.setenv("ANTIPODE_PROVIDER", "compose")
    assert isinstance(default_provider(), ComposeProvider)
    monkeypatch.setenv("ANTIPODE_PROVIDER", "podman")
    with pytest.raises(ConfigurationError, match="podman"):
        default_provider()


@pytest.mark.parametrize("store", sorted(IMAGES))
def test_images_are_named_alike_everywhere(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider, the tool and the stack name one image by one variable."""
    variable = f"ANTIPODE_{store.upper()}_IMAGE"
    monkeypatch.delenv(variable, raising=False)
    named = f"${{{variable}:-{image_of(store)}}}"
    assert named in (ROOT / "tools" / "containers.sh").read_text()
    stack = (ROOT / "docker-compose.yml").read_text()
    assert named in stack or store == "mariadb"  # which the stack does not have
    monkeypatch.setenv(variable, "another:1")
    assert image_of(store) == "another:1"


def test_the_stack_gives_its_servers_all_of_their_files() -> None:
    """Each file of containers/stack is mounted: without its file MySQL in eu copies nothing."""
    text = (ROOT / "docker-compose.yml").read_text()
    for file in (ROOT / "containers" / "stack").iterdir():
        assert f"./containers/stack/{file.name}:" in text


def test_the_benchmark_knows_the_ports_of_the_stack() -> None:
    """The ports by default, and the variables that change them, are those of the file."""
    text = (ROOT / "docker-compose.yml").read_text()
    found = re.findall(r"127\.0\.0\.1:\$\{ANTIPODE_(\w+)_PORT:-(\d+)\}", text)
    stores = {name: int(port) for name, port in found if not name.startswith(APPLICATIONS)}
    assert stores == _PORTS
    assert text.count("127.0.0.1:$") == len(found) == len(set(found))
