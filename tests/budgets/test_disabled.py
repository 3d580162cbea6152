"""What the library adds to a process that has it switched off: nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.budgets._said import said
from tests.budgets._wire import Wire

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

STORES = [
    pytest.param(store, marks=pytest.mark.store(store))
    for store in (
        *("redis", "mysql", "postgresql", "mongodb", "rabbitmq", "activemq"),
        *("dynamodb", "s3", "sns"),
    )
]
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
from types import SimpleNamespace
from antipode_testing import Address
from tests.budgets._clients import CLIENTS, count

topology = SimpleNamespace(primary=Address("127.0.0.1", int(sys.argv[1])))
redis_py = next(client for client in CLIENTS if client.name == "redis-py")
print(json.dumps([dict(count(redis_py, call, topology).counts) for call in ("write", "read")]))
"""
#: Every call of every client of a store, by an application that has the library or has not.
APPLICATION = """
import sys
from contextlib import closing, nullcontext
import antipode
from antipode_testing import Address
from benchmarks.costs.overhead._brokers import StompClient
from benchmarks.costs.overhead._clients import Server
from pymysql.constants import CLIENT
from tests.budgets import _mysql
from tests.budgets._clients import CLIENTS, MESSAGES, Client

_mysql.SESSION_TRACK = CLIENT.SESSION_TRACK = 0  # What the application itself asks for.
store, port, *account, disabled = sys.argv[1:]
server = Server(Address("127.0.0.1", int(port)), *account)
has = disabled == "true"
if has:
    antipode.setup()
stomp = Client("stomp.py", "activemq", StompClient, (), MESSAGES)
for client in (*CLIENTS, stomp):
    if client.store == store:
        with antipode.scope() if has else nullcontext():
            with closing(client.make(server, instrumented=has)) as made:
                for call in client.calls:
                    getattr(made, call.replace(" ", "_"))(1)
            if has:
                antipode.barrier(timeout=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_a_disabled_process_sends_what_a_plain_one_sends(
    store: str, request: pytest.FixtureRequest
) -> None:
    """With ``ANTIPODE_DISABLED=true`` every client of the store sends the same bytes."""
    topology = request.getfixturevalue(f"antipode_{store}")
    account = [str(getattr(topology, name, "")) for name in ("user", "password", "database")]
    with Wire(topology.primary, lambda *_: 0) as wire:
        application = sys.executable, "-c", APPLICATION, store, str(wire.address.port), *account
        for disabled in ("false", "true"):
            subprocess.run(
                [*application, disabled],
                cwd=ROOT,
                env={**os.environ, "ANTIPODE_DISABLED": disabled, "PYTHONHASHSEED": "0"},
                check=True,
            )
        spoken = [each for each in (said(store, one) for one in wire.requests()) if each]
    plain, ours = spoken[: len(spoken) // 2], spoken[len(spoken) // 2 :]
    assert any(plain)
    assert ours == plain


@pytest.mark.slow
@pytest.mark.store("redis")
def test_a_call_of_a_disabled_process_is_the_plain_one(antipode_redis: RedisTopology) -> None:
    """With ``ANTIPODE_DISABLED=true`` no function, exchange or thread is added to SET and GET."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(antipode_redis.primary.port)],
        cwd=ROOT,
        env={**os.environ, "ANTIPODE_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    for counts in json.loads(answer.stdout):
        assert set(counts.values()) == {0}, counts
