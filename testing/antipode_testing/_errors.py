"""What a test bench raises when it cannot do what a test asked of it."""

from __future__ import annotations

from antipode import AntipodeError, ConfigurationError


class ServerMissing(AntipodeError):  # noqa: N818 - the pytest plugin's users know it by this name
    """The executable of a server is not on this machine; the message says how to install it."""

    code = "server_missing"


class ClientMissing(ConfigurationError):  # noqa: N818 - like ServerMissing
    """The Python client of a store is not installed; the message names the ``pip install``."""

    code = "client_missing"


class ServerFailed(AntipodeError):  # noqa: N818 - like ServerMissing
    """A server ended, or was not ready in time; the message carries the end of its log."""

    code = "server_failed"


class TopologyTimeout(AntipodeError, TimeoutError):  # noqa: N818 - like BarrierTimeout
    """Two regions did not come to the state that a test waited for."""

    code = "topology_timeout"
