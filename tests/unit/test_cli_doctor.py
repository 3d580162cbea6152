"""`antipode doctor`: what it finds wrong, what it finds in order, and what it cannot tell."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opentelemetry import propagate
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import antipode
from antipode._runtime import switch
from antipode.integrations import wsgi
from antipode.shim import Endpoint, Observation
from antipode_cli import _doctor_integrations
from antipode_cli._doctor import examine
from antipode_cli.main import main
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode import WriteId
    from antipode_cli._check import Check

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _stock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with OpenTelemetry's stock propagators, and without variables of this test run."""
    for name in [each for each in os.environ if each.startswith("ANTIPODE_")]:
        monkeypatch.delenv(name)
    propagate.set_global_textmap(W3CBaggagePropagator())


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the process has loaded, to which a test may add; other tests have loaded anything."""
    names: set[str] = set()
    monkeypatch.setattr(_doctor_integrations, "loaded", lambda: frozenset(names))
    return names


def store(name: str = "posts", *, waitable: bool = True) -> FakeStore:
    return FakeStore(name, VirtualClock(), waitable=waitable)


def examined(*objects: object, imported: bool = True) -> dict[str, Check]:
    named = [("shop:app", each) for each in objects]
    return {each.subject: each for each in examine(imported=imported, timeout_s=1, objects=named)}


def verdicts(*objects: object, imported: bool = True) -> dict[str, str]:
    found = examined(*objects, imported=imported)
    return {name: check.verdict.value for name, check in found.items()}


def test_a_service_that_is_set_up_has_no_problem() -> None:
    """Propagation, scope, an application with middleware, and a replica that answers."""
    flask = pytest.importorskip("flask")
    antipode.instrument()
    antipode.shim.register(store())
    found = verdicts(wsgi.instrument_app(flask.Flask("shop")))
    assert set(found.values()) == {"ok"}
    assert set(found) == {
        "settings", "propagation", "ingress", "requests", "datastores", "posts"
    }  # fmt: skip


def test_an_instrumentation_that_takes_the_span_alone(modules: set[str]) -> None:
    """No lineage arrives by it, whatever else is loaded; an application is judged by itself."""
    web = pytest.importorskip("aiohttp.web")
    from antipode.integrations import aiohttp_server

    modules |= {f"opentelemetry.instrumentation.{name}" for name in ("aiohttp_server", "flask")}
    ours = "antipode.integrations.aiohttp_server"
    check = examined()["requests"]
    assert (check.verdict.value, ours in check.todo) == ("cannot tell", True)
    assert "aiohttp_server takes the span alone" in check.said
    app = web.Application()
    assert verdicts(app)["requests"] == "problem"
    assert verdicts(aiohttp_server.instrument_app(app))["requests"] == "ok"


def test_without_an_application_it_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """What a process is given by its environment alone is no fault of the application's."""
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^cannot tell +ingress ", shown, flags=re.MULTILINE)
    assert re.search(r"^cannot tell +datastores ", shown, flags=re.MULTILINE)
    assert "antipode doctor --app" in shown


def test_a_propagator_without_baggage_is_a_problem() -> None:
    """No lineage leaves such a process."""
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    check = examined()["propagation"]
    assert check.verdict.value == "problem"
    assert "OTEL_PROPAGATORS" in check.todo


def test_a_propagator_that_is_not_ours_opens_no_scope() -> None:
    """Baggage alone lets a lineage leave; what comes in gets no scope."""
    found = examined()
    assert found["propagation"].verdict.value == "ok"
    assert found["ingress"].verdict.value == "problem"
    assert "antipode.instrument()" in found["ingress"].todo


def test_egress_does_not_hide_the_probe() -> None:
    """A list of datastores that may leave says nothing about what comes in."""
    antipode.configure(egress=["users"])
    antipode.instrument()
    found = verdicts()
    assert (found["propagation"], found["ingress"]) == ("ok", "ok")


def test_settings_that_cannot_be_read_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that is wrong is named, and nothing else is tried."""
    monkeypatch.setenv("ANTIPODE_MAX_TIMEOUT", "soon")
    (check,) = examine(imported=True, timeout_s=1)
    assert check.verdict.value == "problem"
    assert "ANTIPODE_MAX_TIMEOUT" in check.said


def test_a_disabled_process_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing else to examine in it."""
    monkeypatch.setattr(switch, "disabled", True)
    (check,) = examine(imported=True, timeout_s=1)
    assert check.verdict.value == "problem"
    assert "ANTIPODE_DISABLED" in check.todo


def test_barriers_that_are_off_are_a_problem() -> None:
    """Somebody switched them off, and may have forgotten."""
    antipode.configure(mode="off")
    assert verdicts()["settings"] == "problem"


def test_a_dry_run_without_a_folder_is_a_problem() -> None:
    """Nothing would be recorded."""
    antipode.configure(mode="dry-run")
    check = examined()["settings"]
    assert check.verdict.value == "problem"
    assert "ANTIPODE_DRY_RUN_DIR" in check.todo


def test_it_records_nothing_of_its_own(tmp_path: Path) -> None:
    """What it tries in a dry run is no request, and leaves no record."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path)
    antipode.instrument()
    antipode.shim.register(store())
    assert verdicts()["settings"] == "ok"
    assert list(tmp_path.iterdir()) == []


def test_no_datastore_is_a_problem() -> None:
    """An application whose barriers have nobody to ask."""
    assert verdicts()["datastores"] == "problem"


def test_a_replica_that_does_not_answer_is_a_problem() -> None:
    """A barrier would wait for it until its deadline."""
    down = store()
    down.take_down(from_s=0)
    antipode.shim.register(down)
    check = examined()["posts"]
    assert check.verdict.value == "problem"
    assert "does not answer" in check.said


def test_a_replica_that_refuses_is_a_problem() -> None:
    """It answers, but not the question; the server's own words are shown."""
    broken = store()
    broken.break_down()
    antipode.shim.register(broken)
    check = examined()["posts"]
    assert check.verdict.value == "problem"
    assert "cannot be asked what a barrier asks" in check.said


def test_two_replicas_of_one_name_are_a_problem() -> None:
    """A barrier cannot know which of them the next read asks."""
    antipode.shim.register(store())
    antipode.shim.register(store())
    check = examined()["posts"]
    assert check.verdict.value == "problem"
    assert "at='read'" in check.todo


class Balanced(FakeStore):
    """A replica behind an address that leads to another server every time."""

    servers = itertools.count()

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        number = next(self.servers)

        class One(Endpoint):
            def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
                return Observation(f"server-{number % 2}", {})

            def close(self) -> None:
                pass

        return One()


def test_several_servers_behind_one_address_are_a_problem() -> None:
    """A load balancer: the barrier may look at another server than the one that is read."""
    antipode.shim.register(Balanced("posts", VirtualClock(), reads_from="replica"))
    check = examined()["posts"]
    assert check.verdict.value == "problem"
    assert "2 servers answer as its replica" in check.said


def test_a_pool_cannot_be_looked_behind() -> None:
    """Which server answers is known at the read alone; that is said, and is no problem."""
    pooled = store()
    pooled.can_poll = False
    antipode.shim.register(pooled)
    check = examined()["posts"]
    assert check.verdict.value == "cannot tell"
    assert "at='read'" in check.todo


def test_automatic_barriers_without_reads_to_hold_are_a_problem() -> None:
    """As in a process that only consumes messages; any client that holds reads will do."""
    antipode.instrument()
    antipode.configure(barriers="auto")
    antipode.shim.register(store("inbox"))
    check = examined()["automatic"]
    assert check.verdict.value == "problem"
    assert "no registered client can hold reads back" in check.said
    antipode.shim.register(FakeStore("posts", VirtualClock(), floors=True))
    assert verdicts()["automatic"] == "ok"
    antipode.configure(barriers="explicit")
    assert "automatic" not in verdicts()


def test_messages_without_receipts_cannot_be_waited_for() -> None:
    """Said, because a barrier passes them."""
    antipode.shim.register(store("queue", waitable=False))
    assert verdicts()["queue"] == "cannot tell"


def test_it_leaves_no_connection_open() -> None:
    """Every connection that it made is closed again."""
    one = store()
    antipode.shim.register(one)
    examined()
    assert one.look_times_s
    assert one.open_endpoints == 0


def doctor(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program in *folder*, where an application is."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "shims")))
    return subprocess.run(
        [sys.executable, "-m", "antipode", "doctor", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


APPLICATION = """
import antipode
from antipode_shims import embedded

antipode.instrument()


def create_app():
    embedded.shim("posts", "posts.db", reads_from="primary")


async def application(scope, receive, send):
    raise AssertionError


class Settings:
    factory = staticmethod(create_app)


not_callable = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create_app", "Settings.factory"])
def test_an_application_is_imported_and_set_up(tmp_path: Path, name: str) -> None:
    """From the working directory, as `python -m` would; a function without arguments is called."""
    (tmp_path / "shop.py").write_text(APPLICATION, encoding="utf-8")
    found = doctor(tmp_path, "--app", f"shop:{name}")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "its primary answers, the same server" in found.stdout


@pytest.mark.slow
def test_an_application_that_goes_on_for_ever_does_not_keep_it(tmp_path: Path) -> None:
    """Threads that the application starts are no reason to wait."""
    thread = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    (tmp_path / "busy.py").write_text(f"{thread}{APPLICATION}", encoding="utf-8")
    found = doctor(tmp_path, "--app", "busy:create_app")
    assert found.returncode == 0
    assert "the same server" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", ":application", ":not_callable"])
def test_an_application_object_is_only_looked_at(tmp_path: Path, name: str) -> None:
    """What takes a request is not called; without a datastore that is a problem."""
    (tmp_path / "shop.py").write_text(APPLICATION, encoding="utf-8")
    found = doctor(tmp_path, "--app", f"shop{name}")
    assert found.returncode == 1
    assert "no datastore is registered" in found.stdout


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("nowhere", "No module named 'nowhere'"),
        ("shop:missing", "has no attribute 'missing'"),
        ("shop:", "--app must be like"),
        ("fails", "ZeroDivisionError"),
        ("exits", "SystemExit: 0"),
        ("shop:start", "asynchronous"),
    ],
)
def test_an_application_that_cannot_be_imported_is_2(tmp_path: Path, app: str, why: str) -> None:
    """One line says why; nothing is judged."""
    start = "\n\nasync def start():\n    pass\n"
    (tmp_path / "shop.py").write_text(APPLICATION + start, encoding="utf-8")
    (tmp_path / "fails.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    found = doctor(tmp_path, "--app", app)
    assert found.returncode == 2
    assert why in found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""


def test_a_propagator_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    """OTEL_PROPAGATORS names what no distribution brings."""
    found = doctor(tmp_path, OTEL_PROPAGATORS="tracecontext,nonesuch")
    assert found.returncode == 1
    assert "nonesuch" in found.stdout


@pytest.mark.parametrize("timeout", ["0", "-1", "inf", "soon"])
def test_a_timeout_is_a_positive_number(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is wrong usage."""
    with pytest.raises(SystemExit) as error:
        main(["doctor", f"--timeout={timeout}"])
    assert error.value.code == 2
    assert "--timeout" in capsys.readouterr().err
