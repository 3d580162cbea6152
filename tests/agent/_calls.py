"""Names of calls, their digests and their headers. By kind of vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.calls import BadName
from antipode.calls import _names as names

if TYPE_CHECKING:
    from collections.abc import Mapping


def judge(kind: str, given: Mapping[str, Any]) -> str:
    """What this language makes of one vector: a text, or the code of the error."""
    try:
        return _KINDS[kind](given)
    except BadName as error:
        return error.code


def digest(given: Mapping[str, Any]) -> str:
    """Of declared arguments."""
    return names.digest_of(*given["parts"])


def header(given: Mapping[str, Any]) -> str:
    """The name in one of the headers."""
    value = "".join(part * times for part, times in given["build"])
    return names.of_key(value) if given["header"] == names.IDEMPOTENCY_KEY else names.decode(value)


def identity(given: Mapping[str, Any]) -> str:
    """A caller as it is stored."""
    return names.identity("".join(part * times for part, times in given["build"]))


def nested(given: Mapping[str, Any]) -> str:
    """The name of a call that a handler makes."""
    parent = (given["caller"], given["parent"])
    if "explicit" in given:
        return names.explicit(parent, given["callee"], given["method"], given["explicit"])
    what = (given["callee"], given["method"], given["digest"])
    return names.nested(parent, what, given["occurrence"])


_KINDS = {"digests": digest, "headers": header, "identities": identity, "nested": nested}
