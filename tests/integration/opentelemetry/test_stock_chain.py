"""A chain of services whose middle one does not know of lineages: what passes it, and what not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI, Request

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import asgi
from antipode.integrations import httpx as lineages
from antipode.integrations._outgoing import forget_services
from antipode_testing import wait_until
from tests.integration._processes import ROOT, STOCK, process
from tests.integration._served import served

if TYPE_CHECKING:
    from collections.abc import Iterator

POST = WriteId("posts", "post:1", 1, written_hour=490_000)
ORDER = WriteId("orders", "order:1", 1, written_hour=490_000)
MIDDLE = WriteId("middle", "m", 1, written_hour=490_000)


def back() -> FastAPI:
    """The last service: it tells what came, and writes."""
    app = FastAPI()

    @app.get("/")
    async def write(request: Request) -> dict[str, Any]:
        came = antipode.serialize()
        antipode.append(ORDER)
        return {"came": came, "sent": request.headers.get("antipode-sent")}

    asgi.instrument_app(app)
    return app


@pytest.fixture(scope="module")
def last() -> Iterator[str]:
    """The last service's URL."""
    with served(back()) as url:
        yield url


@pytest.fixture(autouse=True)
def _front() -> Iterator[None]:
    """This process is the first service."""
    antipode.instrument()
    lineages.instrument()
    yield
    lineages.uninstrument()
    forget_services()


def ask(middle: str, path: str, **query: str) -> tuple[Any, Lineage]:
    """One request through the chain: what the middle answered, and the caller's lineage then."""
    wait_until(lambda: _answers(middle), what="the service in the middle", timeout_s=60)
    with antipode.scope(Lineage([POST])), httpx.Client(trust_env=False, timeout=30) as client:
        answer = client.get(f"{middle}/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json(), antipode.current()


def _answers(url: str) -> bool:
    """Whether the service has started; asked outside of any scope."""
    try:
        with httpx.Client(trust_env=False) as client:
            lineages.uninstrument_client(client)
            client.get(f"{url}/docs", timeout=30)
    except httpx.TransportError:
        return False
    return True


def passed(middle: str, path: str, last: str) -> bool:
    """Whether the lineage of a request came to the last service, through a stock one."""
    answer, after = ask(middle, path, to=last)
    assert answer["antipode"] is False
    # Nothing carries the answer of the last service past one that does not know of it, and for the
    # first one the middle is a service that takes no part.
    assert after == Lineage([POST])
    came = antipode.deserialize(answer["next"]["came"])
    assert came in (Lineage([POST]), Lineage())
    return came == Lineage([POST])


@pytest.mark.parametrize("agent", [False, True], ids=["by-code", "by-agent"])
def test_a_stock_service_passes_lineages_on(agent: bool, last: str) -> None:  # noqa: FBT001 - a case
    """Instrumented by its own code or by OpenTelemetry's agent, whatever client it calls with."""
    settings = STOCK if agent else {"INSTRUMENT": "1"}
    with process("_stock_service", agent=agent, **settings) as middle:
        for path in ("httpx", "requests", "aiohttp"):
            assert passed(middle, path, last), path
        assert not passed(middle, "suppressed", last)


@pytest.mark.parametrize(
    ("settings", "arrives"),
    [
        ({"OTEL_PROPAGATORS": "tracecontext,baggage"}, True),
        ({"OTEL_PROPAGATORS": "baggage,tracecontext"}, True),
        ({"OTEL_PROPAGATORS": "baggage"}, True),
        ({"OTEL_PROPAGATORS": "tracecontext"}, False),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, True),
        ({"OTEL_SDK_DISABLED": "true"}, True),
        ({"OTEL_PYTHON_FASTAPI_EXCLUDED_URLS": "httpx"}, False),
        ({"OTEL_PYTHON_HTTPX_EXCLUDED_URLS": ".*"}, False),
        ({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "antipode,httpx"}, False),
    ],
    ids=lambda value: " ".join(map("=".join, value.items())) if isinstance(value, dict) else "",
)
def test_settings_of_the_stock_service(
    settings: dict[str, str],
    arrives: bool,  # noqa: FBT001 - a case
    last: str,
) -> None:
    """Its propagators must have baggage, both its ends be instrumented; spans need not be."""
    with process("_stock_service", agent=True, **{**STOCK, **settings}) as middle:
        assert passed(middle, "httpx", last) is arrives


@pytest.mark.parametrize(
    "propagators",
    [
        "tracecontext,baggage",
        "baggage,tracecontext",
        "baggage",
        "tracecontext,antipode",
        "antipode,tracecontext",
        "antipode",
        "tracecontext,baggage,antipode",
        "antipode,baggage,tracecontext",
    ],
)
def test_propagators_of_a_service_with_lineages(propagators: str, last: str) -> None:
    """In every order, with the entry point or with what ``instrument()`` wraps, there and back."""
    with process("_lineage_service", agent=True, OTEL_PROPAGATORS=propagators) as middle:
        answer, after = ask(middle, "write", key="m", to=last)
    assert antipode.deserialize(answer["came"]) == Lineage([POST])
    assert antipode.deserialize(answer["next"]["came"]) == Lineage([POST, MIDDLE])
    assert answer["next"]["sent"] == "1"
    assert after == Lineage([POST, MIDDLE, ORDER])


def test_a_service_whose_propagators_carry_no_baggage_does_not_start() -> None:
    """``instrument()`` says so at once."""
    environment = os.environ | {"OTEL_PROPAGATORS": "tracecontext"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "shims")))
    program = [sys.executable, "-c", "import tests.integration.opentelemetry._lineage_service"]
    found = subprocess.run(
        program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert found.returncode == 1
    assert "carries no baggage" in found.stderr


def test_nested_instrumentations_extract_one_lineage() -> None:
    """Whatever extracts the same request again joins its scope, and the answer is what it added."""
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

    app = back()
    app.add_middleware(OpenTelemetryMiddleware)
    app.add_middleware(OpenTelemetryMiddleware)
    FastAPIInstrumentor.instrument_app(app)
    with (
        served(OpenTelemetryMiddleware(app)) as url,
        antipode.scope(Lineage([POST])),
        httpx.Client(trust_env=False) as client,
    ):
        answer = client.get(url)
        assert antipode.current() == Lineage([POST, ORDER])
    FastAPIInstrumentor.uninstrument_app(app)
    assert antipode.deserialize(answer.json()["came"]) == Lineage([POST])
    assert antipode.deserialize(answer.headers["antipode-lineage"]) == Lineage([ORDER])
