"""Clients at addresses that no rule names, and rules that no client is at."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode._runtime.datastores import forget_clients, parsed, place_of
from antipode._runtime.metrics import log_seldom
from antipode._runtime.process_wide import ProcessWide
from antipode._runtime.ruled import holds_reads
from antipode._runtime.unnamed import tell_of_undeclared, url_of
from antipode.diagnostics import clients_without_names, rules_without_clients
from tests.unit._dry_runs import lints, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode._runtime.datastores import Place, Rule


class Client:
    """Of some library."""


@pytest.fixture
def made() -> Iterator[Callable[..., list[str]]]:
    """Make a client of Redis at a host: the datastores it was instrumented as."""
    wide = ProcessWide("redis", {})
    kept = []

    def make(
        host: str, *, port: int = 6379, database: str = "1", peer: Place | None = None
    ) -> list[str]:
        client, taken = Client(), []

        def take(rule: Rule) -> None:
            taken.append(rule.datastore)

        wide.start(None)
        kept.append(client)
        wide.cover(client, [place_of(host, port)], database, take, peer=peer)
        return taken

    yield make
    wide.stop()
    forget_clients()


def counted() -> int:
    return antipode.telemetry.metrics().get(antipode.telemetry.Metric("unnamed_client", "redis"), 0)


def test_one_warning_an_address(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """It has the entry to add, and one for what is no datastore; each client is counted."""
    antipode.configure(datastores="cache=redis://cache1")
    before = counted()
    for _ in range(3):
        assert made("cache-one-digit-off") == []
    assert made("cache1") == ["cache"]
    assert counted() == before + 3
    (warning,) = [each.getMessage() for each in caplog.records if each.name == "antipode"]
    assert "NAME=redis://cache-one-digit-off:6379/1 to ANTIPODE_DATASTORES" in warning
    assert "-=redis://cache-one-digit-off:6379/1 where" in warning
    assert clients_without_names() == ["redis at cache-one-digit-off:6379/1"]


def test_a_password_with_a_slash_is_not_shown(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Some clients take the rest of it for the database."""
    antipode.configure(datastores="cache=redis://cache1")
    assert made("u", database="cret@cache/0") == []
    (warning,) = [each.getMessage() for each in caplog.records if each.name == "antipode"]
    assert "cret" not in warning
    assert "cret" not in str(clients_without_names())


def test_no_warning_where_its_kind_has_no_rules(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever names no Redis at all may have no datastore there."""
    antipode.configure(datastores="shop=mysql://db")
    before = counted()
    assert made("cache-of-nobody") == []
    assert (counted(), caplog.records) == (before, [])


def test_a_dry_run_has_them_whatever_has_rules(
    made: Callable[..., list[str]], tmp_path: Path
) -> None:
    """With the entry, once: at once where its kind has rules, else when the next request begins."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, datastores="shop=mysql://db")
    with antipode.scope():
        for _ in range(2):
            made("cache-of-nobody")
    assert lints(tmp_path) == []
    with antipode.scope():
        made("cache-1")
    antipode.configure(datastores="cache=redis://other")
    with antipode.scope():
        made("cache-2")
        found = lints(tmp_path)
    assert [name for name, _, _ in found] == ["unnamed-client"] * 3
    entry = "redis://cache-of-nobody:6379/1"
    assert found[0][2] == (
        f"redis at cache-of-nobody:6379/1: add NAME={entry} to ANTIPODE_DATASTORES, or -={entry}"
    )


def test_a_dry_run_leaves_out_what_a_call_names(
    made: Callable[..., list[str]], tmp_path: Path
) -> None:
    """An instrument_client() just after a client was made is in time."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    made("cache-of-nobody")
    forget_clients()  # As naming it does.
    with antipode.scope():
        pass
    antipode.configure(mode="enforce")
    assert lints(tmp_path) == []


def rules_told(folder: Path) -> list[tuple[str, bool]]:
    return [(one["entry"], one["matched"]) for one in records(folder, "rule")]


def test_a_dry_run_says_which_rules_match(made: Callable[..., list[str]], tmp_path: Path) -> None:
    """Of those in force once the first request begins, and of each that matches later, once."""
    antipode.configure(
        mode="dry-run",
        dry_run_dir=tmp_path,
        datastores="a=redis://user:secret@one/1, b=redis://two, c=redis://three, -=redis://four",
    )
    made("two")
    made("four")
    assert records(tmp_path) == []
    for host in ("two", "one", "one"):
        with antipode.scope():
            made(host)
    first = [("a=redis://one:6379/1", False), ("b=redis://two:6379", True)]
    first.append(("c=redis://three:6379", False))
    assert rules_told(tmp_path) == [*first, ("a=redis://one:6379/1", True)]


def test_a_dry_run_that_begins_later_knows_what_matched(
    made: Callable[..., list[str]], tmp_path: Path
) -> None:
    """Also by a rule that a dry run takes for a replica's."""
    antipode.configure(datastores="a=redis://one?both=true, b=redis://two?both=true")
    made("one")
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with antipode.scope():
        assert rules_without_clients() == ["b=redis://two:6379"]
    assert rules_told(tmp_path) == [("a=redis://one:6379", True), ("b=redis://two:6379", False)]


def test_a_dry_run_has_rules_that_came_after_its_first_request(
    made: Callable[..., list[str]], tmp_path: Path
) -> None:
    """At its end, if it had any request at all."""
    for folder, requests in ((tmp_path / "one", 1), (tmp_path / "none", 0)):
        antipode.configure(mode="dry-run", dry_run_dir=folder, datastores="")
        for _ in range(requests):
            with antipode.scope():
                pass
        antipode.configure(datastores="a=redis://one")
        made("none")
        antipode.configure(mode="enforce")
    assert rules_told(tmp_path / "one") == [("a=redis://one:6379", False)]


def test_what_is_no_datastore_of_ours(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Its entry instruments nothing, warns of nothing, and names no datastore."""
    antipode.configure(datastores="cache=redis://shared, -=redis://shared/1")
    before = counted()
    assert made("shared") == []
    assert (counted(), caplog.records, clients_without_names()) == (before, [], [])
    assert not holds_reads("-")


def test_two_names_of_one_server_are_reported_and_not_merged(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """The address that a client of a rule was connected to says whose server it is."""
    rules = "cache=redis://cache.internal, docs=redis://10.0.0.7, feed=redis://10.0.0.9/0"
    antipode.configure(datastores=rules)
    server = place_of("10.0.0.5", 6379)
    assert made("cache.internal", peer=server) == ["cache"]
    assert made("cache.alias", peer=server) == []
    assert made("docs.alias", peer=place_of("10.0.0.7", 6379)) == []
    assert made("10.0.0.9", peer=place_of("10.0.0.9", 6379)) == []  # Of another database.
    first, second, third = [each.getMessage() for each in caplog.records if each.name == "antipode"]
    assert "is 'cache' under another name" in first
    assert "cache=redis://cache.alias:6379/1" in first
    assert "docs=redis://docs.alias:6379/1" in second
    assert "'feed' is database '0' of this server, and this client's is '1'" in third
    assert "another name" not in third
    assert "NAME=redis://10.0.0.9:6379/1" in third


def test_a_name_whose_address_changes(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Its clients stay its own wherever they are connected, and both servers are known as its."""
    antipode.configure(datastores="cache=redis://moves.internal")
    for address in ("10.0.0.35", "10.0.0.36"):
        assert made("moves.internal", peer=place_of(address, 6379)) == ["cache"]
    assert caplog.records == []
    for address in ("10.0.0.35", "10.0.0.36", "10.0.0.37"):
        assert made(f"of-{address}", peer=place_of(address, 6379)) == []
    said = [each.getMessage() for each in caplog.records if each.name == "antipode"]
    assert ["is 'cache' under another name" in each for each in said] == [True, True, False]


def test_a_service_that_was_idle_for_an_hour(
    made: Callable[..., list[str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its clients are made again, after errors, too: no address is warned of a second time."""
    antipode.configure(datastores="idle=redis://idle.internal")
    server = place_of("10.0.0.25", 6379)
    passed_s = 0.0
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed_s)
    for _ in range(3):
        made("idle.other")
        made("idle.alias", peer=server)
        made("idle.internal", peer=server)
        tell_of_undeclared("redis", "idle", server)
        log_seldom("unmet_unreachable", "idle", "its server is away")
        passed_s += 3_600
    said = Counter(each.getMessage() for each in caplog.records if each.name == "antipode")
    assert said.pop("its server is away") == 3
    assert len(said) == said.total() == 3


def test_two_databases_of_one_server_are_told_apart(
    made: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """Of two rules whose clients were connected there, the one for the client's own database."""
    antipode.configure(datastores="feed=redis://cache/1, jobs=redis://other/1, rest=redis://rest/2")
    server = place_of("10.0.0.5", 6379)
    assert made("cache", peer=server) == ["feed"]
    assert made("other", peer=server) == ["jobs"]
    assert made("alias", peer=server) == []
    assert made("rest") == []
    first, second = [each.getMessage() for each in caplog.records if each.name == "antipode"]
    assert "is 'feed' under another name of its host" in first
    assert "'rest' is database '2' of this server, and this client's is '1'" in second


def test_rules_without_clients_are_known(made: Callable[..., list[str]]) -> None:
    """As long as none was made; what is no datastore is none."""
    antipode.configure(datastores="a=redis://one/1, b=redis://two, -=redis://three")
    made("none")
    assert rules_without_clients() == ["a=redis://one:6379/1", "b=redis://two:6379"]
    made("two")
    assert rules_without_clients() == ["a=redis://one:6379/1"]


@pytest.mark.parametrize(
    "url",
    [
        "redis://cache:6379/1",
        "redis://[fd00::7]:6379/0",
        "unix:///run/redis.sock",
        "redis+sentinel://mymaster/1",
        "redis+sentinel://s1:26379/mymaster/1",
        "mysql://db:3306/shop",
        "mysql://localhost/shop?unix_socket=/run/m.sock",
        "postgresql://db:5432/shop",
        "postgresql:///shop?host=/run/pg",
        "mongodb://a:27017",
        "mongodb://set.example:27017",
        "amqp://broker:5672/%2F",
        "stomp://broker:61613",
        "dynamodb://eu-west-1:443",
    ],
)
def test_the_entry_names_the_address(url: str) -> None:
    """What a warning says to add is the rule for that client."""
    (rule,) = parsed(f"-={url}")
    made_of = url_of(rule.store, rule.places[0], rule.database)
    (again,) = parsed(f"-={made_of}")
    assert again.places == rule.places
    assert again.database == rule.database
