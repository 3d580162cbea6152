"""The applications on the stack of docker-compose.yml: each shows what its barrier is for.

They run where the stack runs with a profile: `tools/containers.sh check` starts it, or
``docker compose --profile train-ticket up``.
"""

from __future__ import annotations

import http.client
import os
import re
import socket

import httpx
import pytest

from antipode_testing import wait_until
from benchmarks.social_graph import _services as social_graph
from benchmarks.social_graph._graph import edges
from benchmarks.social_graph._observers import Edge
from benchmarks.social_graph._servers import REGIONS
from benchmarks.social_graph._workload import Compose
from benchmarks.train_ticket._customers import log_in
from benchmarks.train_ticket._services import Edge as TrainTicket
from benchmarks.train_ticket._stack import ORDERS, order
from tests.integration.containers.test_containers import REQUIRE_VARIABLE, ROOT, TIMEOUT_S

POSTS = 5
WITHOUT, WITH = range(10), range(10, 30)


STACK = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


def test_each_service_of_the_social_graph_is_in_its_profile() -> None:
    """The stack runs the services that the benchmark runs, in the same regions."""
    found = re.findall(r"<<: \*social-graph\n +command: \[([a-z-]+), ([a-z]+)\]", STACK)
    assert {f"{region} {name}" for name, region in found} == {
        f"{region} {name}"
        for region in REGIONS
        for name in social_graph._names(region)
        if not name.endswith(" http")
    }


def test_each_service_of_train_ticket_is_in_its_profile() -> None:
    """The stack runs the services that the benchmark runs."""
    found = re.findall(r"<<: \*train-ticket\n +command: \[([a-z-]+)\]", STACK)
    source = (ROOT / "benchmarks" / "train_ticket" / "_services.py").read_text(encoding="utf-8")
    java = re.findall(r'self\._java\(\s*"[a-z-]+", "([a-z-]+)"', source)
    assert {*found} == {*java, "user", "payment", "notification"}


def _address(name: str) -> str:
    """Where the stack publishes an edge, once it answers; else a skip or a failure."""
    (default,) = re.findall(rf"\{{ANTIPODE_{name}_PORT:-(\d+)\}}", STACK)
    port = int(os.environ.get(f"ANTIPODE_{name}_PORT", default))
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
    except OSError as error:
        if os.environ.get(REQUIRE_VARIABLE):
            pytest.fail(f"{name}: {error} ({REQUIRE_VARIABLE} is set)", pytrace=False)
        pytest.skip(f"the stack does not run with this profile: {name}: {error}")
    return f"127.0.0.1:{port}"


def _cancelled(edge: TrainTicket, number: int, *, keep_cookies: bool) -> list[int]:
    """The refunds that a user is shown who cancels an order and looks at once, in cents."""
    one = order(number)
    with httpx.Client(timeout=TIMEOUT_S) as client:
        headers = {"Authorization": log_in(client, edge, one.user)}
        path = f"/api/v1/cancelservice/cancel/{one.id}/{one.user}"
        answer = client.get(f"{edge.cancel}{path}", headers=headers).raise_for_status()
        cookies = [it.partition(";")[0] for it in answer.headers.get_list("set-cookie")]
    path = f"/api/v1/inside_pay_service/inside_payment/money/{one.id}"
    headers = {"Cookie": "; ".join(cookies)} if keep_cookies else {}
    found = httpx.get(f"{edge.look_up}{path}", headers=headers, timeout=TIMEOUT_S)
    return [it["cents"] for it in found.raise_for_status().json()]


def test_train_ticket_shows_the_refund() -> None:
    """In containers, too, who cancels and looks at once finds the refund; without a lineage not."""
    names = ("AUTH", "CANCEL", "LOOK_UP", "NOTIFICATION")
    at = [f"http://{_address(f'TRAIN_TICKET_{name}')}" for name in names]
    edge = TrainTicket(*at, database="")
    assert max(WITH) < ORDERS
    without = [_cancelled(edge, number, keep_cookies=False) for number in WITHOUT]
    assert [] in without
    for number in WITH:
        assert _cancelled(edge, number, keep_cookies=True) == [order(number).refund], number


def test_social_graph_shows_each_post() -> None:
    """In containers, too, a home timeline in eu names no post that cannot be read there."""
    compose = Edge(_address("SOCIAL_GRAPH_COMPOSE"))
    home = Edge(_address("SOCIAL_GRAPH_HOME_TIMELINE_EU"))
    author, reader = edges()[0]
    asked = {"user_id": str(reader), "start": "0", "stop": "100"}
    posts = []
    for number in range(POSTS):
        status, answer = compose.post(
            "/compose", Compose(author, f"hello {number}", 1, ()).fields()
        )
        assert status == http.client.OK, answer
        posts.append(answer["post_id"])

    def shown() -> bool:
        status, timeline = home.get("/home-timeline", asked)
        assert status == http.client.OK, timeline
        assert sorted(timeline["named"]) == sorted(it["post_id"] for it in timeline["posts"])
        return {*posts} <= {*timeline["named"]}

    wait_until(shown, what="the posts in the timeline", timeout_s=TIMEOUT_S)
    compose.close()
    home.close()
