"""What only a report sees: messages and calls that left one process and came to no other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.integrations._outgoing import Outgoing
from antipode.shim import record_handled, record_sent
from antipode_cli.report import RecordsError, load, render, report
from tests.unit._dry_run_files import OTHER_REQUEST, SAVE, SHOW, Recorder, save
from tests.unit._dry_runs import records

if TYPE_CHECKING:
    from pathlib import Path

TASK = "the task invoice"


@pytest.fixture
def web() -> Recorder:
    """A service that takes two requests."""
    found = Recorder("aaaaaaaaaaaa", "web")
    found.scope(0)
    found.scope(0, request=OTHER_REQUEST)
    return found


def other(language: str = "python") -> Recorder:
    found = Recorder("bbbbbbbbbbbb", "worker")
    found.lines[0]["language"] = language
    return found


def lints(folder: Path, *recorders: Recorder) -> list[tuple[str, tuple[str, ...]]]:
    found = report(load([save(folder, recorders)])).lints
    return [(each.lint, each.details) for each in found]


def test_a_message_that_no_process_handled(web: Recorder, tmp_path: Path) -> None:
    """Whatever else was handled; its publisher's line and to whom it went are said."""
    worker = other()
    for sent in (TASK, "queue"):
        web.message(1, SAVE, sent)
    assert lints(tmp_path / "1", web, worker) == [("unhandled-message", ("queue", TASK))]
    worker.scope(2)
    worker.message(2, None, "the task another")
    worker.message(2, None, "")  # Of a broker.
    assert lints(tmp_path / "2", web, worker) == [("unhandled-message", (TASK,))]


def test_a_queue_that_no_process_handles(web: Recorder, tmp_path: Path) -> None:
    """Though another of its broker is handled; not where a consumer may stand for any queue."""
    worker = other()
    for queue in ("orders", "audit", "replies.1"):
        web.message(1, SAVE, "broker", destination=queue)
    worker.message(2, None, "broker", destination="orders")
    worker.message(2, None, "", destination="replies.2")  # Of which broker it does not know.
    told = [("unhandled-message", ("audit of broker",))]
    assert lints(tmp_path / "1", web, worker) == told
    worker.message(3, None, "broker", destination="dead-letters")
    assert lints(tmp_path / "2", web, worker) == []


@pytest.mark.parametrize("known", ["orders", ""])
def test_a_destination_that_one_side_does_not_know(
    web: Recorder, tmp_path: Path, known: str
) -> None:
    """Its datastore counts, as for consumers that are handed headers alone."""
    worker = other()
    web.message(1, SAVE, "broker", destination=known)
    worker.message(2, None, "broker", destination="" if known else "orders")
    assert lints(tmp_path, web, worker) == []


def test_messages_that_are_not_handled_yet(web: Recorder, tmp_path: Path) -> None:
    """Where one was handled the next only waits: its consumer takes part."""
    worker = other()
    web.message(1, SAVE, TASK)
    web.message(1, SAVE, TASK, request=OTHER_REQUEST)
    worker.message(2, None, TASK)
    assert lints(tmp_path, web, worker) == []


def test_consumers_in_other_languages(web: Recorder, tmp_path: Path) -> None:
    """They do not say what they handle: that they take part in its request is enough."""
    web.message(1, SAVE, "queue")
    java = other("java")
    java.scope(2)
    assert lints(tmp_path, web, java) == []


def test_a_call_that_no_process_took(web: Recorder, tmp_path: Path) -> None:
    """A scope of its request that a task began is not its; one more is."""
    worker = other()
    worker.scope(1)
    worker.message(1, None, TASK)
    worker.call(2, SHOW, "web:80")
    assert lints(tmp_path / "1", web, worker) == [("call-not-taken", ("web:80",))]
    called = Recorder("cccccccccccc", "called")
    called.scope(2)
    assert lints(tmp_path / "2", web, worker, called) == []


def test_a_service_that_took_any_call(web: Recorder, tmp_path: Path) -> None:
    """It takes part: an answer without a lineage may be of something before it."""
    web.call(1, SAVE, "other:80")
    web.call(1, SAVE, "other:80", request=OTHER_REQUEST)
    called = other()
    called.scope(2)
    assert lints(tmp_path, web, called) == []


def recorded(folder: Path, host: str, **settings: Any) -> list[str]:
    """The calls that are written down of one to *host*, which answers without a lineage."""
    antipode.configure(mode="dry-run", dry_run_dir=folder, **settings)
    with antipode.scope():
        Outgoing(host, host).answered(None)
        with_lineage = Outgoing("answers", host)
        with_lineage.answered("1~")
    antipode.configure(mode="enforce")
    return [each["to"] for each in records(folder, "call")]


@pytest.mark.parametrize("host", ["web", "web.internal", "10.0.0.7", "localhost", "fd00::7"])
def test_calls_within_the_network(tmp_path: Path, host: str) -> None:
    """What answers without a lineage is written down, where its name is nobody else's."""
    assert recorded(tmp_path, host) == [host]


@pytest.mark.parametrize("host", ["api.example.com", "93.184.216.34"])
def test_calls_of_other_peoples_services(tmp_path: Path, host: str) -> None:
    """Nothing is said of them, unless settings name them as the application's own."""
    assert recorded(tmp_path / "1", host) == []
    assert recorded(tmp_path / "2", host, egress_hosts=[host]) == [host]
    assert recorded(tmp_path / "3", host, peers={host: "always"}) == [host]
    assert recorded(tmp_path / "4", "web", peers={"web": "never"}) == []


def test_messages_of_brokers(tmp_path: Path) -> None:
    """What is published and handled is written down with its datastore, once a message."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    record_sent("queue")  # Without a scope: no request to join it with.
    with antipode.scope():
        record_sent("queue")
    with antipode.scope():
        record_handled("queue")
    antipode.configure(mode="enforce")
    found = [(each["step"], each["to"], "site" in each) for each in records(tmp_path, "message")]
    assert found == [("sent", "queue", True), ("handled", "queue", False)]


CACHE, SHOP = "cache=redis://cache:6379/0", "shop=postgresql://db:5432/app"


def test_a_rule_by_which_no_process_made_a_client(web: Recorder, tmp_path: Path) -> None:
    """A process that never uses a store is normal: one that no process uses is named."""
    worker = other()
    for each in (CACHE, SHOP):
        web.rule(0, each, matched=False)
        worker.rule(0, each, matched=False)
    worker.rule(1, CACHE, matched=True)
    found = report(load([save(tmp_path, [web, worker])]), fail_on="lint")
    assert found.rules_without_clients == (SHOP,)
    assert (found.lints, found.failed) == ((), False)
    text = render(found, "text")
    assert f"rules without a client: {SHOP} (no recorded process made one" in text
    assert SHOP in render(found, "html")
    assert json.loads(render(found, "json"))["rules_without_clients"] == [SHOP]


def test_rules_that_another_language_may_use(web: Recorder, tmp_path: Path) -> None:
    """It does not say by which rules it made clients, so nothing is said of any."""
    web.rule(0, SHOP, matched=False)
    found = report(load([save(tmp_path, [web, other("java")])]))
    assert found.rules_without_clients == ()
    assert "rules without" not in render(found, "text")


@pytest.mark.parametrize("wrong", [{"entry": 1}, {"matched": "yes"}, {"datastore": None}])
def test_a_rule_that_is_none(web: Recorder, tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Its file is refused."""
    web.rule(0, SHOP, matched=False)
    web.lines[-1] |= wrong
    with pytest.raises(RecordsError):
        load([save(tmp_path, [web])])
