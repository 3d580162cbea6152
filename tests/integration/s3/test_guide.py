"""The guide to S3 does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims import s3 as shims

if TYPE_CHECKING:
    from tests.integration.s3._regions import Regions

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "s3.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.mark.store("s3")
def test_examples_run(regions: Regions) -> None:
    """Both examples, run one after the other on lagging regions, hold; so does the test's."""
    regions.topology.set_lag(50)
    *examples, test = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    code = "\n".join(examples)
    for region in (regions.home, regions.away):
        where = f'"s3", region_name="{region}"'
        assert where in code
        code = code.replace(where, f'"s3", **OPTIONS["{region}"]')
    options = {region: regions.options(region) for region in (regions.home, regions.away)}
    names: dict[str, Any] = {"OPTIONS": options}
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    assert names["body"] == names["value"] == b"hello"
    for one in ("posts", "near"):
        names[one].close()
    for one in ("us", "eu"):
        shims.uninstrument_client(names[one])
        names[one].close()
    exec(compile(test, str(GUIDE), "exec"), names)  # noqa: S102 - as above
    names["test_the_follower_reads_the_post"](regions.topology)
