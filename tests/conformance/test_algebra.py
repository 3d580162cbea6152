"""Level 2: what append, remove, merge, only and bounded encoding keep."""

from __future__ import annotations

from typing import Any

import pytest

from antipode import Lineage, LineageTooLarge, deserialize
from antipode._lineage.shortening import holdable
from antipode._request.lineage_text import encode_bounded
from antipode.shim import encode
from tests.conformance import _vectors as vectors


@pytest.mark.parametrize("script", vectors.cases("L2-algebra", "scripts"))
def test_script(script: dict[str, Any]) -> None:
    """Every check of the script holds."""
    named: dict[str, Lineage] = {}
    for step in script["steps"]:
        if "as" in step:
            named[step["as"]] = _make(step, named)
        else:
            _check(step, named)


def _make(step: dict[str, Any], named: dict[str, Lineage]) -> Lineage:
    match step["op"]:
        case "decode":
            made = deserialize(step["text"])
        case "receive":
            latest_s = step["now_s"] + step["max_promise_s"]
            made = named[step["of"]].received(hour=step["hour"], latest_s=latest_s)
        case "hold":
            made = holdable(named[step["of"]]).lineage
        case "append":
            made = named[step["to"]].append(vectors.write_of(step["write"]))
        case "remove":
            made = named[step["from"]].remove(vectors.write_of(step["write"]))
        case "merge":
            first, *others = (named[name] for name in step["of"])
            made = first.merge(*others)
        case "only":
            made = named[step["of"]].only(*step["datastores"])
        case "mark":
            made = named[step["of"]].marked((step["subject"], step["reason"]))
        case _:
            raise AssertionError(step)
    return made


def _check(step: dict[str, Any], named: dict[str, Lineage]) -> None:
    match step["op"]:
        case "encode":
            assert encode(named[step["of"]]) == step["text"]
        case "encode_bounded" if "code" in step:
            with pytest.raises(LineageTooLarge) as caught:
                _bounded(step, named)
            assert caught.value.code == step["code"]
        case "encode_bounded":
            assert _bounded(step, named) == step["text"]
        case "count":
            lineage = named[step["of"]]
            found = {
                "writes": len(lineage),
                "incomplete": len(lineage.incomplete),
                "promises": len(lineage.promises),
                "unknown": len(lineage.unknown),
            }
            wanted = {kind: number for kind, number in step.items() if kind in found}
            assert {kind: found[kind] for kind in wanted} == wanted
        case "equal":
            left, right = (named[name] for name in step["of"])
            assert (left == right) is step["equal"]
            assert (hash(left) == hash(right)) or not step["equal"]
        case _:
            raise AssertionError(step)


def _bounded(step: dict[str, Any], named: dict[str, Lineage]) -> str:
    egress = step.get("egress")
    return encode_bounded(named[step["of"]], max_bytes=step["max_bytes"], egress=egress)
