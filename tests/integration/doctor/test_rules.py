"""`antipode doctor` over a process that rules wire: what works is in order, and slips are told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_testing import LagProxy
from tests.integration.doctor._examined import examined, of, problems

if TYPE_CHECKING:
    from antipode_testing import RedisTopology

redis: Any = pytest.importorskip("redis")
pytestmark = [pytest.mark.store("redis"), pytest.mark.slow]


def client(address: Any) -> Any:
    return redis.Redis(host=address.host, port=address.port)


def rules(topology: RedisTopology) -> str:
    near = f"{topology.replica}?reads_from=replica"
    return f"cache=redis://{topology.primary}, cache=redis://{near}"


def test_clients_that_are_made_later(antipode_redis: RedisTopology) -> None:
    """As pools that open with the application, and Django's cache: rules name their datastore."""
    with LagProxy(antipode_redis.primary) as primary, LagProxy(antipode_redis.replica) as replica:
        near = f"{replica.address}?reads_from=replica"
        antipode.setup(datastores=f"cache=redis://{primary.address}, cache=redis://{near}")
        assert of("rules") == ["ok", "ok"]
        assert of("datastores") == ["ok"]
        assert not problems()


@pytest.mark.ci
def test_clients_that_rules_name(antipode_redis: RedisTopology) -> None:
    """Nothing is said of their rules, and their servers answer."""
    antipode.setup(datastores=rules(antipode_redis))
    made = [client(antipode_redis.primary), client(antipode_redis.replica)]
    assert not of("rules")
    assert of("cache") == ["ok"]
    assert not problems()
    for each in made:
        each.close()


def test_a_port_that_is_wrong_by_a_digit(antipode_redis: RedisTopology) -> None:
    """The client that has no name is told with it."""
    address = antipode_redis.primary
    wrong = f"{address.host}:{str(address.port)[:-1]}{(address.port + 1) % 10}"
    antipode.setup(datastores=f"cache=redis://{wrong}")
    made = client(address)
    (check,) = (each for each in examined() if each.subject == "rules")
    assert check.verdict.value == "problem"
    assert f"redis at localhost:{address.port}/0 has no name" in check.said
    made.close()


def test_a_replica_whose_rule_does_not_say_so(antipode_redis: RedisTopology) -> None:
    """Nobody knows then which of the two barriers shall ask: a problem, with what to write."""
    antipode.setup(datastores=rules(antipode_redis).replace("?reads_from=replica", ""))
    made = [client(antipode_redis.primary), client(antipode_redis.replica)]
    (told,) = (each for each in examined() if each.verdict.value == "problem")
    assert told.subject == "cache"
    assert "say reads_from='replica' where one is a replica" in told.said
    for each in made:
        each.close()


def test_reads_that_go_to_the_primary_instead(antipode_redis: RedisTopology) -> None:
    """Nothing is wrong where rules name both addresses."""
    both = rules(antipode_redis)
    antipode.setup(datastores=both)
    antipode.configure(datastores=both, barriers="auto", on_stale="primary")
    made = [client(antipode_redis.primary), client(antipode_redis.replica)]
    assert of("cache") == ["ok"]
    assert not problems()
    for each in made:
        each.close()


def test_a_rule_that_this_service_never_uses(antipode_redis: RedisTopology) -> None:
    """Nobody can tell whether it is right where nothing answers; the others are in order."""
    antipode.setup(datastores=f"{rules(antipode_redis)}, posts=mongodb://nowhere.invalid:1")
    made = [client(antipode_redis.primary), client(antipode_redis.replica)]
    (told,) = (each for each in examined() if each.subject == "rules" and "posts=" in each.said)
    assert told.verdict.value == "cannot tell"
    assert not problems()
    for each in made:
        each.close()


def test_a_teardown_that_was_left_in(antipode_redis: RedisTopology) -> None:
    """It is as where setup() was forgotten."""
    antipode.setup(datastores=rules(antipode_redis))
    made = client(antipode_redis.primary)
    antipode.teardown()
    assert of("setup") == ["problem"]
    made.close()


def test_rules_that_nothing_goes_by(antipode_redis: RedisTopology) -> None:
    """Clients of a store that is skipped are as if no rule named them."""
    antipode.setup(datastores=rules(antipode_redis), skip=["redis"])
    assert of("rules") == ["ok"]
    made = client(antipode_redis.primary)
    (check,) = (each for each in examined() if each.subject == "rules")
    assert (check.verdict.value, check.todo) == (
        "problem",
        "call antipode.setup() without 'redis' in skip",
    )
    made.close()


@pytest.mark.slow
def test_one_server_under_two_names(antipode_redis: RedisTopology) -> None:
    """Its addresses differ, and its log is one: a problem, unless each is a database of its own."""
    primary = antipode_redis.primary
    with LagProxy(primary) as proxy:
        for database, verdict in (("", "problem"), ("/1", "cannot tell")):
            antipode.setup(datastores=f"a=redis://{primary}/0, b=redis://{proxy.address}{database}")
            number = int(database[1:] or 0)
            made = (
                client(primary),
                redis.Redis(host=proxy.address.host, port=proxy.address.port, db=number),
            )
            with antipode.scope():
                made[0].set("a", 1)
            told = [each for each in examined() if "has the log of" in each.said]
            assert [each.verdict.value for each in told] == [verdict]
            for each in made:
                each.close()
            antipode.teardown()


def test_where_nothing_is_set_up(
    antipode_redis: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing to do is `antipode.setup()`, and nothing else goes before it."""
    for name in ("ANTIPODE_REQUIRE_AGENTS", "ANTIPODE_KEEP_GOING"):  # Of this project alone.
        monkeypatch.delenv(name, raising=False)
    antipode.configure(datastores=rules(antipode_redis))
    first = next(each for each in examined() if each.todo)
    assert (first.subject, first.verdict.value) == ("setup", "problem")
    assert first.todo.startswith("call antipode.setup()")


def test_threads_that_skip_leaves_alone() -> None:
    """What runs in a pool has no scope: the name to take out of `skip` is said."""
    todo = "call antipode.setup() without 'threads' in skip"
    with ThreadPoolExecutor(1):
        for skip, said in (["threads"], [todo]), ([], []), (["threads"], []):
            antipode.setup(skip=skip)
            assert [each.todo for each in examined() if each.subject == "threads"] == said
