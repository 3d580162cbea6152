"""A class of JUnit in TrainTicket, as a team writes it: it fails where a barrier is missing."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from benchmarks import _maven
from benchmarks._machine import ROOT
from benchmarks.train_ticket._build import SERVICES, build
from benchmarks.train_ticket._variants import TrainTicketError
from tests.conformance._agents import REQUIRE_VARIABLE
from tests.integration.train_ticket._application import place

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.timeout(900), pytest.mark.store("mongodb")]

GUIDE = (ROOT / "docs/guides/java/several-services.md").read_text(encoding="utf-8")


@pytest.fixture
def built() -> None:
    """The services with the library; else a skip, or a failure where Java is required."""
    try:
        build(library=True)
    except TrainTicketError as error:
        if "java" in os.environ.get(REQUIRE_VARIABLE, "").split(","):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.mark.usefixtures("built")
def test_the_class_fails_at_the_line_without_a_barrier(antipode_mongodb: MongoDBTopology) -> None:
    """`@AntipodeDryRun` names the read in Java, and succeeds once the barrier is there."""
    url = antipode_mongodb.url(antipode_mongodb.primary)
    store = f"spring.data.mongodb.uri={url}", "spring.data.mongodb.database=train_ticket_junit"
    with pytest.raises(_maven.MavenError) as failed:
        _maven.test(SERVICES, "inside-payment", *store)
    said = str(failed.value)
    assert "trainticket.insidepayment.LookUpTest: 1 missing barrier\n" in said
    file, line = place("MoneyReader.java", "return database.find(")
    assert f"read  trainticket/insidepayment/{file}:{line} in of\n" in said
    for shown in re.findall(r"(?m)^(?:trainticket|  write|  read ).*$", GUIDE):
        assert shown in said, "a line of the guide"
    _maven.test(SERVICES, "inside-payment", *store, "train-ticket.barrier-at-look-up=true")
