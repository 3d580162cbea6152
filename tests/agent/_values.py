"""Values of the library as the vectors spell them in JSON, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import (
    AntipodeError,
    BarrierResult,
    Lineage,
    LineageDecodeError,
    Promise,
    Status,
    UnmetError,
    WriteId,
)
from antipode.shim import Incomplete, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping


class Unsupported(Exception):  # noqa: N818 - an answer, not a fault
    """Python's agent does not have it."""


def write_of(found: Mapping[str, Any]) -> WriteId:
    """A write; integer versions are strings of digits."""
    version = found["opaque"] if "opaque" in found else int(found["version"])
    return WriteId(
        found["datastore"],
        found["key"],
        version,
        written_hour=found.get("minted_h", 0),
        covering=found.get("covering", False),
    )


def write_at(found: Mapping[str, Any]) -> WriteId:
    """A write of a vector that is about one datastore."""
    return write_of({"datastore": "posts", **found})


def promise_of(found: Mapping[str, Any]) -> Promise:
    """A promise."""
    return Promise(found["datastore"], found["id"], found["expires_s"])


def lineage_of(found: Mapping[str, Any]) -> Lineage:
    """A lineage; what is left out is empty."""
    return Lineage(
        map(write_of, found.get("writes", ())),
        incomplete=[(subject, reason) for subject, reason in found.get("incomplete", ())],
        promises=map(promise_of, found.get("promises", ())),
        open_branches=int(found.get("open_branches", "0")),
        unknown=found.get("unknown", ()),
    )


def of_write(write: WriteId) -> dict[str, Any]:
    """*write* in JSON."""
    found: dict[str, Any] = {"datastore": write.datastore, "key": write.key}
    if isinstance(write.version, int):
        found["version"] = str(write.version)
    else:
        found["opaque"] = write.version
    if write.written_hour:
        found["minted_h"] = write.written_hour
    if write.covering:
        found["covering"] = True
    return found


def of_promise(promise: Promise) -> dict[str, Any]:
    """*promise* in JSON."""
    return {
        "datastore": promise.datastore,
        "id": promise.id,
        "expires_s": promise.expires_s,
    }


def of_lineage(lineage: Lineage) -> dict[str, Any]:
    """*lineage* in JSON; what is empty is left out."""
    found: dict[str, Any] = {
        "writes": [of_write(write) for write in lineage],
        "incomplete": sorted([mark.subject, mark.reason] for mark in lineage.incomplete),
        "promises": [of_promise(one) for one in sorted(lineage.promises, key=str)],
        "unknown": sorted(lineage.unknown),
    }
    if lineage.open_branches:
        found["open_branches"] = str(lineage.open_branches)
    return {name: value for name, value in found.items() if value}


def of_outcome(outcome: Outcome) -> dict[str, Any]:
    """One outcome in JSON."""
    dependency = outcome.write
    what = (
        {"promise": of_promise(dependency)}
        if isinstance(dependency, Promise)
        else {"write": of_write(dependency)}
    )
    return {
        **what,
        "status": str(outcome.status),
        "reported": outcome.reported,
        "server": outcome.server,
        "cause": outcome.cause,
        "waited_s": outcome.waited_s,
    }


def of_result(result: BarrierResult) -> dict[str, Any]:
    """A result in JSON."""
    return {
        "ok": result.ok,
        "outcomes": [of_outcome(outcome) for outcome in result.outcomes],
        "waited_s": result.waited_s,
        "eta_s": result.eta_s,
        "incomplete": sorted([mark.subject, mark.reason] for mark in result.incomplete),
        "incomplete_ok": result.incomplete_ok,
    }


def result_of(found: Mapping[str, Any]) -> BarrierResult:
    """A result that came as JSON."""
    return BarrierResult(
        tuple(map(_outcome_of, found["outcomes"])),
        found["waited_s"],
        found["eta_s"],
        frozenset(Incomplete(subject, reason) for subject, reason in found["incomplete"]),
        found["incomplete_ok"],
    )


def _outcome_of(found: Mapping[str, Any]) -> Outcome:
    one = promise_of(found["promise"]) if "promise" in found else write_of(found["write"])
    status = Status(found["status"])
    return Outcome(
        one, status, found["waited_s"], found["server"], found["cause"], found["reported"]
    )


def of_error(error: BaseException) -> dict[str, Any]:
    """What an operation ended with, in JSON."""
    found: dict[str, Any] = {"code": "store", "message": str(error), "type": type(error).__name__}
    if isinstance(error, AntipodeError):
        found["code"] = error.code
    if isinstance(error, UnmetError):
        found["result"] = of_result(error.result)
    if isinstance(error, LineageDecodeError):
        found["offset"] = error.offset
    return found
