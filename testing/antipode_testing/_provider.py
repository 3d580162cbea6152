"""What runs the servers of a topology that names none: processes, containers, or a stack's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from antipode import ConfigurationError

if TYPE_CHECKING:
    from ._topology import Provider

VARIABLE = "ANTIPODE_PROVIDER"
NATIVE = "native"
COMPOSE = "compose"
PROVIDERS = (NATIVE, "containers", COMPOSE)


def provider_name() -> str:
    """What the environment variable ``ANTIPODE_PROVIDER`` says; ``native`` by default.

    Raises:
        ConfigurationError: there is no such provider.
    """
    name = os.environ.get(VARIABLE) or NATIVE
    if name not in PROVIDERS:
        raise ConfigurationError(f"{VARIABLE} is {name!r}; known are {', '.join(PROVIDERS)}")
    return name


def default_provider() -> Provider:
    """The provider that the environment names."""
    name = provider_name()
    if name == NATIVE:
        from .servers.native import NativeProvider

        return NativeProvider()
    if name == COMPOSE:
        from .containers.compose import ComposeProvider

        return ComposeProvider()
    from .containers.provider import ContainerProvider

    return ContainerProvider()
