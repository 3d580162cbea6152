"""The guide to SNS and SQS does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import sns as shims
from antipode_testing import SNSTopology
from antipode_testing.lab import Lab

if TYPE_CHECKING:
    from tests.integration.sns._regions import Regions

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "sns.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.mark.store("sns")
def test_examples_run(regions: Regions, topic: Any) -> None:
    """The examples, run one after the other, hold."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL))
    for service in ("sns", "sqs"):
        code, found = re.subn(
            rf'"{service}", region_name="[a-z0-9-]+"', f"**{service.upper()}", code
        )
        assert found == 1
    names: dict[str, Any] = {
        "TOPIC": topic.arn,
        "QUEUE": topic.queue,
        **{
            service.upper(): {"service_name": service, **regions.options(service)}
            for service in ("sns", "sqs")
        },
    }
    # The first message is handled and not deleted: it is hidden while the second one is read.
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["handled"] == "post 1 is there"
    assert names["delivery"].value == "post 2 is there"
    with antipode.scope():
        assert names["handler"]({"Records": [{}, {}]}, None) == 2
    for one in ("writer", "reader"):
        names[one].close()
    for one in ("sns", "sqs"):
        shims.uninstrument_client(names[one])
        names[one].close()


def test_the_first_sentence_names_the_emulator() -> None:
    """Nobody takes a figure of an emulator for one of AWS."""
    assert "emulator" in TEXT.splitlines()[2]
    assert "emulator" in str(SNSTopology.__doc__).splitlines()[0]


@pytest.mark.parametrize("function", [shims.instrument_client, shims.shim])
def test_options_are_listed(function: Any) -> None:
    """Each option of each function is in the table."""
    options = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    ]
    rows = "".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    assert all(f"`{option}`" in rows for option in options)


def test_operations_are_listed() -> None:
    """Each covered operation is in the table."""
    assert all(f"`{each}`" in TEXT for each in shims.COVERED_READS | shims.COVERED_WRITES)


@pytest.mark.store("sns")
def test_a_lab_says_where_its_regions_are() -> None:
    """`antipode lab sns` prints what boto3 takes; it refuses a fail-over."""
    with Lab("sns", lag_ms=5) as lab:
        about = lab.describe()
        assert about["regions"] == SNSTopology.regions
        assert about["primary"]["url"].startswith("http://")
        assert "no second region" in lab.answer("failover")["error"]
        assert lab.answer("cut")["ok"]
        assert lab.answer("reset")["ok"]
