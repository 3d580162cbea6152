"""``ANTIPODE_DISABLED=true`` with all clients installed: nothing public instruments anything."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import propagate

import antipode.integrations
import antipode_shims
from antipode._runtime import switch

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process is that was started with it."""
    monkeypatch.setattr(switch, "disabled", True)


def instrumentations() -> list[Any]:
    """All public ``instrument*`` of the core, the integrations and the shims."""
    modules = ["antipode", "antipode.propagation"]
    for package in (antipode.integrations, antipode_shims):
        found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        modules += [each.name for each in found if not each.name.rpartition(".")[2].startswith("_")]
    return [
        pytest.param(getattr(module, public), id=f"{module.__name__}.{public}")
        for module in map(import_module, modules)
        for public in module.__all__
        if public.startswith("instrument")
    ]


def patched() -> list[object]:
    """What instrumentations that take nothing put themselves in place of."""
    import aiocache
    import aiodataloader
    import aiohttp
    import celery.signals
    import dramatiq.broker
    import grpc
    import httpx
    import huey.api
    import requests.adapters
    import rq.job
    import strawberry.dataloader
    import urllib3
    from opentelemetry.instrumentation.propagators import get_global_response_propagator

    return [
        aiohttp.ClientSession._request,
        [len(getattr(celery.signals, name).receivers) for name in ("task_prerun", "task_postrun")],
        len(celery.signals.before_task_publish.receivers),
        [getattr(dramatiq.broker.Broker, name) for name in ("emit_before", "emit_after")],
        [rq.job.Job.to_dict, rq.job.Job.restore],
        [huey.api.Huey.serialize_task, huey.api.Huey.execute],
        [aiocache.cached.decorator, aiocache.cached_stampede.decorator],
        [aiodataloader.DataLoader.load, aiodataloader.dispatch_queue_batch],
        [strawberry.dataloader.DataLoader.load, strawberry.dataloader.dispatch_batch],
        [grpc.server, grpc.insecure_channel, grpc.secure_channel],
        [grpc.aio.server, grpc.aio.insecure_channel, grpc.aio.secure_channel],
        [httpx.Client._send_single_request, httpx.AsyncClient._send_single_request],
        [requests.adapters.HTTPAdapter.send, urllib3.Retry.increment],
        get_global_response_propagator(),
        propagate.get_global_textmap(),
        [threading.Thread.start, threading.Thread.run, threading.Timer.run],
        [ThreadPoolExecutor.submit, ProcessPoolExecutor.submit],
        [
            asyncio.get_event_loop_policy(),
            asyncio.new_event_loop,
            asyncio.BaseEventLoop.create_task,
        ],
    ]


class Client:
    """A client of no kind: whoever looks at it more closely fails."""

    __slots__ = ()


@pytest.mark.parametrize("instrument", instrumentations())
def test_instrumentations_touch_nothing(instrument: Callable[..., object]) -> None:
    """Each returns what it was given, unseen, and patches nothing."""
    before = patched()
    required = {
        name: "posts"
        for name, each in inspect.signature(instrument).parameters.items()
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    }
    takes = any(
        each.kind is not each.KEYWORD_ONLY
        for each in inspect.signature(instrument).parameters.values()
    )
    client = Client()
    found = instrument(*([client] if takes else []), **required)
    returns = inspect.signature(instrument).return_annotation != "None"
    assert found is (client if takes and returns else None)
    assert patched() == before


def test_there_are_instrumentations() -> None:
    """The walk above goes through all of them."""
    names = {each.id for each in instrumentations()}
    assert {
        "antipode.instrument",
        "antipode.propagation.instrument",
        "antipode.integrations.celery.instrument",
        "antipode.integrations.dramatiq.instrument",
        "antipode.integrations.rq.instrument",
        "antipode.integrations.huey.instrument",
        "antipode.integrations.aiocache.instrument",
        "antipode.integrations.aiodataloader.instrument",
        "antipode.integrations.strawberry.instrument",
        "antipode.integrations.grpc.instrument_channel",
        "antipode_shims.mysql.instrument_engine",
        "antipode_shims.redis.instrument_client",
    } <= names
    assert len(names) >= 20
