"""What public modules offer, and what their ``instrument_*`` return."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import antipode_shims
from antipode import ConfigurationError, integrations

CORE = (
    "antipode",
    "antipode.checker",
    "antipode.diagnostics",
    "antipode.propagation",
    "antipode.shim",
    "antipode.telemetry",
    "antipode_testing",
)
PACKAGES = (antipode_shims, integrations)
MODULES = (
    *CORE,
    *(
        f"{package.__name__}.{found.name}"
        for package in PACKAGES
        for found in pkgutil.iter_modules(package.__path__)
        if not found.name.startswith("_")
    ),
)


def imported(name: str) -> Any:
    """A public module; its framework may be missing where only the wheel is tested."""
    try:
        return import_module(name)
    except (ImportError, ConfigurationError) as error:  # gRPC's says it so.
        pytest.skip(f"not installed here: {error}")


@pytest.mark.parametrize("name", MODULES)
def test_modules_offer_what_is_public(name: str) -> None:
    """Completion shows the names of ``__all__``, each of which is there, and public modules."""
    module = imported(name)
    below = {each.removeprefix(f"{name}.") for each in MODULES if each.startswith(f"{name}.")}
    assert set(module.__all__) <= set(dir(module)) <= {*module.__all__, *below}
    assert all(hasattr(module, each) for each in module.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_instrument_returns_what_it_was_given(name: str) -> None:
    """By its signature: every ``instrument_*`` that is given an object returns that object."""
    module = imported(name)
    for each in module.__all__:
        if each.startswith("instrument_") and each != "instrument_django":  # Given a name.
            signature = inspect.signature(getattr(module, each))
            given = next(iter(signature.parameters.values())).annotation
            assert signature.return_annotation == given, each


def test_clients_and_loops_come_back() -> None:
    """The very object."""
    requests, httpx = imported("requests"), imported("httpx")
    ours = imported("antipode.integrations.requests"), imported("antipode.integrations.httpx")
    for made, module in ((requests.Session(), ours[0]), (httpx.Client(), ours[1])):
        with made:
            assert module.instrument_client(made) is made
            module.uninstrument_client(made)
    loop = asyncio.new_event_loop()
    try:
        assert imported("antipode.integrations.asyncio").instrument_loop(loop) is loop
    finally:
        loop.close()
