"""Level 2: what append, remove, merge, only and bounded encoding keep."""

from __future__ import annotations

from typing import Any

import pytest

from antipode import Lineage, LineageTooLarge, deserialize
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
            return deserialize(step["text"])
        case "append":
            return named[step["to"]].append(vectors.write_of(step["write"]))
        case "remove":
            return named[step["from"]].remove(vectors.write_of(step["write"]))
        case "merge":
            first, *others = (named[name] for name in step["of"])
            return first.merge(*others)
        case "only":
            return named[step["of"]].only(*step["datastores"])
        case "mark":
            return named[step["of"]].marked((step["subject"], step["reason"]))
    raise AssertionError(step)


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
        case "equal":
            left, right = (named[name] for name in step["of"])
            assert (left == right) is step["equal"]
            assert (hash(left) == hash(right)) or not step["equal"]
        case _:
            raise AssertionError(step)


def _bounded(step: dict[str, Any], named: dict[str, Lineage]) -> str:
    egress = step.get("egress")
    return encode_bounded(named[step["of"]], max_bytes=step["max_bytes"], egress=egress)
