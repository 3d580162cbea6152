"""The operations that need no scope, no store and no settings: what vectors ask for."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import antipode
import antipode.shim

from . import _calls, _guards, _headers, _scripts, _shims, _stores
from ._values import lineage_of, of_lineage

Request = dict[str, Any]


class Pure:
    """Answers each by itself, in the caller's thread."""

    def op_hello(self, _: Request) -> Any:
        """Who this is."""
        return {"language": "python", "version": _version(), "stores": _shims.stores()}

    def op_parse(self, request: Request) -> Any:
        """A text as values."""
        lineage = antipode.deserialize(request["text"])
        return {"lineage": of_lineage(lineage), "text": antipode.shim.encode(lineage)}

    def op_render(self, request: Request) -> Any:
        """A lineage as text, shortened."""
        lineage = lineage_of(request["lineage"])
        most, egress = request.get("max_bytes"), request.get("egress")
        if most is None and egress is None:
            return antipode.shim.encode(lineage)
        return _scripts.bounded(lineage, sys.maxsize if most is None else most, egress)

    def op_algebra(self, request: Request) -> Any:
        """The steps of a script of level 2."""
        return _scripts.algebra(request["steps"])

    def op_explain(self, request: Request) -> Any:
        """A lineage for a person."""
        lineage = antipode.deserialize(request["text"])
        told = [*map(str, lineage), *map(str, sorted(lineage.incomplete))]
        return [*told, *sorted(map(str, lineage.promises))]

    def op_script(self, request: Request) -> Any:
        """A script of level 4."""
        return _scripts.run(request["script"])

    def op_guard(self, request: Request) -> Any:
        """A read of level 4 that is held back."""
        return _guards.run(request["given"])

    def op_call(self, request: Request) -> Any:
        """A name, a digest or a header of a call."""
        return _calls.judge(request["kind"], request["given"])

    def op_decide(self, request: Request) -> Any:
        """What a shim decides without its store."""
        return _stores.decide(request["store"], request["kind"], request["given"])

    def op_headers(self, request: Request) -> Any:
        """A vector of level 3."""
        return _headers.judge(request["kind"], request["given"])


@cache  # Each vector asks for it.
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("antipode-xcy")
    except PackageNotFoundError:
        return "unknown"
