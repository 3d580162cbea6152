"""Level 3: headers in and out, what calls leave behind, scopes, hosts, and what dry runs find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import Lineage
from tests.agent._values import lineage_of
from tests.conformance._agents import asked

from .records import records

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector


def _judged(agent: Answers, vector: Vector) -> dict[str, Any]:
    """What the agent makes of *vector*; what is expected in it is not for the agent."""
    given = {"entry": vector.content} if vector.kind == "refused_hosts" else vector.content
    found: dict[str, Any] = asked(agent, "headers", kind=vector.kind, given=given)
    return found


def requests_in(agent: Answers, vector: Vector) -> None:
    """A request starts from what its headers say; members of others are the application's."""
    found = _judged(agent, vector)
    assert lineage_of(found["lineage"]) == lineage_of(vector.content["lineage"])
    assert found["others"] == vector.content.get("others", found["others"])


def calls(agent: Answers, vector: Vector) -> None:
    """Each call carries these headers, and leaves this lineage in its caller's scope."""
    found = _judged(agent, vector)["calls"]
    for call, ended in zip(vector.content["calls"], found, strict=True):
        assert ended["sent"] == sorted(call["sent"])
        if "after" in call:
            assert lineage_of(ended["after"]) == lineage_of(call["after"])


def responses_out(agent: Answers, vector: Vector) -> None:
    """The answer brings back what the request added, to whom that is of use."""
    allowed = [None, "1"] if vector.content.get("optional") else [vector.content["answer"]]
    assert _judged(agent, vector)["answer"] in allowed


def sessions(agent: Answers, vector: Vector) -> None:
    """Cookies and tokens say what requests start from, and age; which of them is made."""
    found = _judged(agent, vector)["requests"]
    for request, ended in zip(vector.content["requests"], found, strict=True):
        assert lineage_of(ended["starts"]) == lineage_of(request["starts"])
        assert ended["counts"] == request.get("counts", {})
        assert ended["content"] == request["content"]
        assert ended["lasts"] is bool(request["content"])
        assert ended["token"] == request.get("token", ended["token"])
        if request["content"] is not None:
            assert ended["cache_control"] == request["cache_control"]


def session_signatures(agent: Answers, vector: Vector) -> None:
    """Services of several languages that share keys share cookies and tokens."""
    found = _judged(agent, vector)
    assert found == {"value": vector.content["value"], "read": vector.content["read"]}


def strips(agent: Answers, vector: Vector) -> None:
    """Nothing of ours is left, and everything else is."""
    assert _judged(agent, vector)["kept"] == sorted(vector.content["kept"])


def hosts(agent: Answers, vector: Vector) -> None:
    """A lineage goes to the hosts that the setting names, however their URL is spelled."""
    assert _judged(agent, vector)["sent"] is vector.content["sent"]


def refused_hosts(agent: Answers, vector: Vector) -> None:
    """What names no host is a mistake in the setting."""
    assert _judged(agent, vector)["code"] == "configuration"


def scopes(agent: Answers, vector: Vector) -> None:
    """Every check of the script holds."""
    found = _judged(agent, vector)["holds"]
    expected = [step["lineage"] for step in vector.content["steps"] if step["op"] == "holds"]
    assert [_hourless(lineage_of(each)) for each in found] == list(map(lineage_of, expected))


def _hourless(lineage: Lineage) -> Lineage:
    """*lineage* without mint hours: what is recorded states the present one."""
    return Lineage(
        [type(each)(each.datastore, each.key, each.version) for each in lineage],
        incomplete=lineage.incomplete,
    )


def finding_ids(agent: Answers, vector: Vector) -> None:
    """Reports of all languages name a finding alike."""
    assert _judged(agent, vector)["id"] == vector.content["id"]


def verdicts(agent: Answers, vector: Vector) -> None:
    """Each read is judged by what the scope depends on and what guards it, and by nothing else."""
    found = _judged(agent, vector)
    expected = [
        (step["verdict"], sorted(step["writes"]))
        for step in vector.content["steps"]
        if step["op"] == "read" and step["verdict"]
    ]
    assert [(read["verdict"], sorted(read["writes"])) for read in found["reads"]] == expected
    assert sorted(found["guards"]) == sorted(vector.content.get("guards_after", found["guards"]))
    assert sorted(found["counted"]) == sorted(vector.content.get("counted", []))
    assert sorted(found["lints"]) == sorted(vector.content.get("lints", []))


KINDS = {
    "calls": calls,
    "finding_ids": finding_ids,
    "hosts": hosts,
    "records": records,
    "refused_hosts": refused_hosts,
    "requests_in": requests_in,
    "responses_out": responses_out,
    "scopes": scopes,
    "session_signatures": session_signatures,
    "sessions": sessions,
    "strips": strips,
    "verdicts": verdicts,
}
