"""gRPC itself, or an error that says how to get it."""

from __future__ import annotations

from antipode import ConfigurationError

try:
    import grpc
    import grpc.aio as _  # noqa: F401 # pyright: ignore[reportUnusedImport]
except ImportError as error:
    _MISSING = 'the gRPC integration needs grpcio 1.60 or later: pip install "antipode-xcy[grpc]"'
    raise ConfigurationError(_MISSING) from error

__all__ = ["grpc"]
