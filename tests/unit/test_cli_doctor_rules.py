"""`antipode doctor` on a rule without a client: which is a slip, and which is in order."""

from __future__ import annotations

import pytest

from antipode._runtime.datastores import parsed
from antipode_cli._doctor_rules import is_near, judged

CLIENTS = ("redis at cache:6379/0", "redis at localhost:6380/0", "mysql at cache:3306")


@pytest.mark.parametrize(
    ("url", "reachable", "verdict"),
    [
        # Nothing answers, and a client is at the same host, or at the same port.
        ("redis://cache:7000", False, "problem"),
        ("redis://other:6379", False, "problem"),
        ("mysql://cache:3307/shop", False, "problem"),
        # Another server answers, one sign apart: left out, added, another, or before the next.
        ("redis://cach:6379", True, "cannot tell"),
        ("redis://caches:6379", True, "cannot tell"),
        ("redis://cache:6378", True, "cannot tell"),
        ("redis://cache:3679", True, "cannot tell"),
        ("redis://cache:6379/1", True, "cannot tell"),
        # Another server, which answers: its clients are made later.
        ("redis://cache:7000", True, "ok"),
        ("redis://sessions:6390", True, "ok"),
        ("postgresql://cache:5432", True, "ok"),
        # A server that this service may never use.
        ("redis://sessions:6390", False, "cannot tell"),
        ("mongodb://docs", False, "cannot tell"),
        # What no connection shows from here.
        ("redis+sentinel://mymaster", None, "ok"),
        ("dynamodb://eu-west-1", None, "ok"),
    ],
)
def test_a_rule_without_a_client(url: str, reachable: bool | None, verdict: str) -> None:  # noqa: FBT001 - a parameter
    """A client that is nearly there is what the rule means, or was meant to."""
    (rule,) = parsed(f"shop={url}")
    near = [where for where in CLIENTS if is_near(rule, where)]
    check = judged(rule, near, reachable=reachable)
    assert (check.verdict.value, check.subject) == (verdict, "rules"), check
    assert f"shop={url.lower()}".split("/shop")[0] in check.said.lower()
