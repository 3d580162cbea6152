"""What travels for a dry run: guards and the request's id, never stored and never seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage, WriteId
from antipode._dry_run.notes import Notes
from antipode.propagation import AntipodePropagator
from antipode.shim import floor, record_write, stored_lineage, stored_text
from antipode_shims._messages.headers import outgoing, received

from ._dry_runs import fake, records, verdicts, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


#: A service that extracts what it is sent, reads at a replica, and answers.
SERVICE = """
import json, sys
import antipode
from antipode.shim import floor
from antipode_testing import FakeStore, VirtualClock
from opentelemetry import context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

store = FakeStore("posts", VirtualClock(), reads_from="replica")
antipode.shim.register(store)
propagator = antipode.propagation.AntipodePropagator(W3CBaggagePropagator())
context.attach(propagator.extract(json.loads(sys.argv[1])))
floor(store)
answer = {}
antipode.propagation.inject_response(answer)
propagator.inject(answer)
print(json.dumps(answer))
"""

PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())


def serve(headers: dict[str, str], **settings: str) -> dict[str, str]:
    """Let a service of its own process answer a request with *headers*; its answer's."""
    names = {f"ANTIPODE_{name.upper()}": text for name, text in settings.items()}
    done = subprocess.run(
        [sys.executable, "-c", SERVICE, json.dumps(headers)],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def sent() -> dict[str, str]:
    """The headers of a call that this request makes now."""
    headers: dict[str, str] = {}
    PROPAGATOR.inject(headers)
    return headers


def extracted(headers: dict[str, str], work: Callable[[], object]) -> None:
    """Do *work* in the request that came with *headers*."""
    context = PROPAGATOR.extract(headers, otel_context.Context())
    token = otel_context.attach(context)
    try:
        work()
    finally:
        otel_context.detach(token)


@pytest.mark.parametrize(
    ("region", "verdict"), [("eu", "guarded"), ("us", "unguarded"), ("", "unguarded")]
)
def test_guard_covers_services_downstream_of_its_region(
    tmp_path: Path, region: str, verdict: str
) -> None:
    """A barrier in one service guards the reads of those that it calls, in its region alone."""
    fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "front", region="eu")
    with antipode.scope():
        record_write(write())
        antipode.barrier(timeout=1)
        headers = sent()
    serve(headers, mode="dry-run", dry_run_dir=str(tmp_path / "back"), region=region)
    assert verdicts(tmp_path / "back") == [verdict]
    (front,) = records(tmp_path / "front", "scope")
    (back,) = records(tmp_path / "back", "scope")
    assert (front["opened"], back["opened"]) == ("here", "incoming")
    assert front["request"] == back["request"]
    assert "site" not in back


def test_guard_comes_back_with_the_response(tmp_path: Path) -> None:
    """What a service guards is guarded for its caller, in the same region."""
    store = fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, region="eu")
    answer: dict[str, str] = {}

    def called() -> None:
        record_write(write())
        antipode.barrier(timeout=1)
        antipode.propagation.inject_response(answer)

    with antipode.scope():
        extracted(sent(), called)
        came = antipode.propagation.extract_response(answer)
        floor(store)
    assert verdicts(tmp_path) == ["guarded"]
    assert list(came) == [write()]
    assert not came.unknown


def test_service_without_a_dry_run_passes_it_on(tmp_path: Path) -> None:
    """Notes go through a service that enforces as they came; who sent them has them already."""
    fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, region="eu")
    with antipode.scope():
        record_write(write())
        antipode.barrier(timeout=1)
        headers = sent()
    notes = set(re.findall(r"~(0[rg][^~,]*)", headers["baggage"]))
    assert len(notes) == 2
    answer = serve(headers)
    assert notes <= set(re.findall(r"~(0[rg][^~,]*)", answer["baggage"]))
    assert answer["antipode-lineage"] == "1"


def test_notes_are_neither_seen_nor_stored(tmp_path: Path) -> None:
    """The current lineage has no notes, nor has what is stored beside a value or found there."""
    fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with antipode.scope() as scope:
        record_write(write())
        antipode.barrier(timeout=1)
        text = scope.text()
        assert "~0g" in text
        assert "~0r" in text
        assert not antipode.current().unknown
        assert "~0" not in antipode.serialize()
        assert "~0" not in stored_text(antipode.deserialize(text))
        assert not stored_lineage("posts", text).unknown
    antipode.configure(mode="enforce")
    with antipode.scope(text):
        assert "~0" not in stored_text(antipode.current())


@pytest.mark.parametrize("lineage", [None, Lineage([write()])])
def test_message_carries_them(tmp_path: Path, lineage: Lineage | None) -> None:
    """A consumer's request is the publisher's, guards included, whatever lineage it is sent."""
    store = fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with antipode.scope():
        record_write(write())
        antipode.barrier(timeout=1)
        headers = outgoing({}, datastore="news", lineage=lineage)
    with antipode.scope(received(headers)[0]):
        floor(store)
    assert verdicts(tmp_path) == ["guarded"]
    publisher, consumer = records(tmp_path, "scope")
    assert publisher["request"] == consumer["request"]


def test_snapshot_of_the_handle_carries_them(tmp_path: Path) -> None:
    """Code that takes the baggage member's characters sends the request's id as well."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    with antipode.scope() as scope:
        (opened,) = records(tmp_path, "scope")
        assert f"~0r{opened['request']}" in scope.snapshot()


def test_notes_go_before_anything_else(tmp_path: Path) -> None:
    """Where room is short a guard is dropped, never a dependency or a mark; nothing is counted."""
    fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, max_lineage_bytes=256)
    many = [write(1, log=f"log-{number}") for number in range(8)]
    with antipode.scope(Lineage(many)) as scope:
        antipode.barrier(timeout=1)
        text = scope.text()
    assert len(text) + len("antipode=") <= 256
    found = antipode.deserialize(text)
    assert set(found) == set(many)
    assert not found.incomplete
    assert 0 < len(found.unknown) < 9


def test_egress_hides_guards_of_other_datastores(tmp_path: Path) -> None:
    """A guard names a datastore: it leaves only where that may be named."""
    fake()
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path, egress=["users"])
    with antipode.scope() as scope:
        record_write(write())
        antipode.barrier(timeout=1)
        assert "0g" not in scope.text()
        assert "0r" in scope.text()


def test_smallest_of_several_ids_counts(tmp_path: Path) -> None:
    """Where branches of two requests meet, everybody comes to the same id."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    high, low = "0rffffffffffffffff", "0r0000000000000001"
    member = f"antipode=1~{low}~{high}"
    extracted({"baggage": member}, lambda: None)
    (opened,) = records(tmp_path, "scope")
    assert opened["request"] == low[2:]


@pytest.mark.parametrize(
    "item",
    [
        "0g",
        "0g-",
        "0g-.",
        "0gZXU",
        "0gZXU.kposts.log",
        "0g*.kposts.1.log",
        "0gA.kposts.1.log",
        "0gZXU.isize.post",
        "0r123",
        "0rFFFFFFFFFFFFFFFF",
    ],
)
def test_malformed_notes_say_nothing(item: str) -> None:
    """What others send may be broken: it is ignored."""
    notes = Notes()
    notes.take([item])
    assert len(notes.items()) == 1  # The id that was drawn.


@pytest.mark.parametrize("region", ["", "eu", "eu-west/1", "日本"])
@pytest.mark.parametrize(
    "guarded",
    [write(2**64 - 1), write("v1.~x"), WriteId("a.b~c", "ключ", 3, 500_000), write(covering=True)],
)
def test_notes_come_back_as_they_went(region: str, guarded: WriteId) -> None:
    """Any region and any write survive the text, in the alphabet of baggage."""
    notes, back = Notes(), Notes()
    notes.guard(region, guarded)
    text = antipode.serialize(Lineage(unknown=notes.items()))
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", text)
    back.take(antipode.deserialize(text).unknown)
    assert back.items() == notes.items()
    assert back.covers(region, guarded)
    assert not back.covers(f"{region}x", guarded)


def test_greatest_version_of_a_log_is_kept() -> None:
    """Guards of one log are one note, whatever order they come in."""
    notes = Notes()
    for version in (3, 9, 5):
        notes.guard("eu", write(version))
    assert len(notes.items()) == 2
    assert notes.covers("eu", write(9))


def test_the_first_request_of_a_process_is_the_one_it_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The dry run of a service begins when it is instrumented, not somewhere in a request."""
    monkeypatch.setenv("ANTIPODE_MODE", "dry-run")
    monkeypatch.setenv("ANTIPODE_DRY_RUN_DIR", str(tmp_path))
    antipode.instrument()
    with antipode.scope("1~0r0123456789abcdef"):
        pass
    (opened,) = records(tmp_path, "scope")
    assert opened["request"] == "0123456789abcdef"
