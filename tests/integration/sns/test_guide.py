"""The guide to SNS and SQS does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import sns as shims

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
