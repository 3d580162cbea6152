"""Django under WSGI and ASGI, wrapped or by its own middleware, with OpenTelemetry and without."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage
from tests.integration._ingress import ADDED, CAME, ask, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("django")
pytest.importorskip("uvicorn")

from django.core.signing import Signer

from tests.integration.django._site import SIGNED_BEFORE

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def site(*arguments: str) -> Iterator[int]:
    """A site in a process of its own: settings are made once in a process."""
    command = [sys.executable, "-W", "error", "-m", "tests.integration.django._site", *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        said = process.stdout.readline()
        assert said, process.stderr.read()
        try:
            yield int(said)
        finally:
            process.stdin.close()
            errors = process.stderr.read()
            assert process.wait(30) == 0, errors
    assert "Failed to detach context" not in errors, errors


@pytest.mark.parametrize("instrumentation", ["none", "otel"])
@pytest.mark.parametrize("place", ["around", "helper", "middleware"])
@pytest.mark.parametrize("server", ["wsgi", "asgi"])
def test_requests_have_scopes_and_answers(server: str, place: str, instrumentation: str) -> None:
    """Views of both kinds, failures, streams; one scope, one header, what is sent on is alive."""
    if instrumentation == "otel":
        pytest.importorskip("opentelemetry.instrumentation.django")
    with site(server, place, instrumentation) as port:
        for number, path in enumerate(("/", "/async", "/")):
            answer = ask(port, path, sent(CAME, more="tenant=a"))
            assert answer.lineage == Lineage([ADDED])
            said = json.loads(answer.body)
            members = dict(m.split("=") for m in said["baggage"].split(","))
            assert antipode.deserialize(members["antipode"]) == Lineage([CAME, ADDED])
            assert said["late"] == 0, number
        failed = ask(port, "/fail", sent(CAME))
        assert (failed.status, failed.lineage) == (500, Lineage([ADDED]))
        streamed = ask(port, "/stream")
        assert streamed.lineage == Lineage([CAME])
        assert antipode.deserialize(streamed.body[6:].decode()) == Lineage([CAME, ADDED])
        assert json.loads(ask(port).body)["late"] == 1
        assert ask(port, "/none", sent()).lineage == Lineage()
        assert ask(port, "/none").lineage is None


@pytest.mark.parametrize("server", ["wsgi", "asgi"])
def test_opentelemetrys_hook_answers_as_well(server: str) -> None:
    """Without a middleware of ours; the view's own header of that name is replaced."""
    pytest.importorskip("opentelemetry.instrumentation.django")
    with site(server, "hook", "otel") as port:
        for path in ("/", "/async", "/"):
            assert ask(port, path, sent(CAME)).lineage == Lineage([ADDED])


@pytest.mark.parametrize("place", ["session", "around+session"])
@pytest.mark.parametrize("server", ["wsgi", "asgi"])
def test_the_next_request_of_a_user_depends_on_what_one_wrote(server: str, place: str) -> None:
    """By settings alone: signed with the site's secret, believed with its former ones, too."""
    with site(server, place, "none") as port:
        wrote = ask(port, "/fresh")
        (ours,) = [v for n, v in wrote.headers if n == "set-cookie" and v.startswith("antipode=")]
        assert "theirs=1; Path=/" in [v for n, v in wrote.headers if n == "set-cookie"]
        value, *attributes = ours.split("; ")
        assert {"HttpOnly", "Max-Age=60", "Path=/", "SameSite=Lax"} < set(attributes)
        assert "Secure" not in attributes
        assert ("cache-control", "private") in wrote.headers
        read = ask(port, "/seen", {"Cookie": f"theirs=1; {value}"})
        assert read.body == wrote.body
        assert not [each for each in read.headers if each[0] == "set-cookie"]
        secured = ask(port, "/fresh", {"X-Forwarded-Proto": "https"})
        assert any("; Secure" in v for n, v in secured.headers if v.startswith("antipode="))
        assert not [each for each in ask(port, "/public").headers if each[0] == "set-cookie"]
        forged = ask(port, "/seen", {"Cookie": "antipode=1:1~ka.5.k:forged"})
        assert (forged.status, forged.body) == (200, b"1")
        assert any("; Max-Age=0;" in v for n, v in forged.headers if v.startswith("antipode="))
        # The token of an event, for the page of another user.
        token = ask(port, "/token").body.decode()
        page = ask(port, "/seen", {"antipode-session": token})
        assert page.body == wrote.body
        assert not [each for each in page.headers if each[0] == "set-cookie"]
        # As a site signed that had the old secret.
        content = value.removeprefix("antipode=").rpartition(":")[0]
        signer = Signer(key=SIGNED_BEFORE, salt="antipode.session", fallback_keys=[])
        rotated = ask(port, "/seen", {"Cookie": f"antipode={signer.sign(content)}"})
        assert rotated.body == wrote.body
