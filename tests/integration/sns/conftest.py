"""Fixtures of the tests of SNS and SQS, over emulators."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from antipode_testing import SNSTopology
from antipode_testing.plugin import USE
from tests.integration.sns._regions import Regions

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(
    scope="session",
    params=["ministack", pytest.param("elasticmq", marks=pytest.mark.store("elasticmq"))],
)
def antipode_sns(request: pytest.FixtureRequest) -> Iterator[SNSTopology]:
    """Both emulators of queues: one takes everything, the other is as strict as SQS."""
    make = partial(SNSTopology, strict=request.param == "elasticmq")
    yield from request.config.stash[USE].run("sns", make)


@pytest.fixture
def regions(antipode_sns: SNSTopology) -> Iterator[Regions]:
    """Clients of both regions, which end with the test."""
    with ExitStack() as stack:
        yield Regions(antipode_sns, stack)


@pytest.fixture
def topic(antipode_sns: SNSTopology) -> Any:
    """A topic and its queue that no other test uses."""
    return antipode_sns.create_topic(f"news-{uuid.uuid4().hex}")
