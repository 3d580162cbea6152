"""The tree of errors. Each class has a stable ``code``, listed in the specification."""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class ServerName(NamedTuple):
    """Where a client reads, as telemetry and logs name it.

    Attributes:
        system: ``db.system.name`` of OpenTelemetry's conventions; empty where they have none.
        address: a host, as the client was given it, or the path of a socket.
        port: 0 for a socket, or where it is not known.
    """

    system: str
    address: str
    port: int

    @classmethod
    def of(cls, system: str, where: tuple[object, ...]) -> ServerName | None:
        """From what a client's settings say of its server; None where that is no address."""
        if not where:
            return None
        host, *rest = where[0] if isinstance(where[0], tuple) else where
        port = str(rest[0]) if rest else "0"
        return cls(system, str(host), int(port)) if port.isdecimal() else None

    def attributes(self) -> dict[str, str | int]:
        """The attributes of spans, events and log records."""
        found: dict[str, str | int] = {"server.address": self.address}
        if self.system:
            found["db.system.name"] = self.system
        if self.port:
            found["server.port"] = self.port
        return found

    def __str__(self) -> str:
        """For a person."""
        where = f"{self.address}:{self.port}" if self.port else self.address
        return f"{self.system} at {where}".lstrip()


class AntipodeError(Exception):
    """The root of every error that this library raises on purpose.

    Attributes:
        code: a stable identifier; messages may change, codes do not.
    """

    code: ClassVar[str] = "antipode"


class ConfigurationError(AntipodeError):
    """The library is set up in a way that cannot work; raised early, where the mistake is."""

    code = "configuration"


class LineageDecodeError(AntipodeError, ValueError):
    """A text is no lineage.

    Attributes:
        code: one of the decode codes of the lineage format (``lineage_item``, ...).
        offset: index of the character at which the text stops being a lineage.
    """

    code = "lineage_decode"

    def __init__(self, code: str, message: str, *, offset: int = 0) -> None:
        """Keep the precise code with the message."""
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all arguments: an error crosses process pools."""
        return _decode_error, (self.code, str(self), self.offset)


def _decode_error(code: str, message: str, offset: int) -> LineageDecodeError:
    return LineageDecodeError(code, message, offset=offset)


class LineageTooLarge(AntipodeError, ValueError):
    """A size limit is too small for even the mark that says what is missing."""

    code = "lineage_too_large"


class StaleSnapshot(AntipodeError):
    """A connection reads from a snapshot that is older than what the barrier waited for.

    Commit or roll back the open transaction before the read.
    """

    code = "stale_snapshot"
    server: ServerName | None = None


class PromiseAbandoned(AntipodeError):
    """A branch fulfils a promise that was abandoned: nobody waits for its data any more.

    Its transaction must not commit as if the promise still held: let it roll back.
    """

    code = "promise_abandoned"
