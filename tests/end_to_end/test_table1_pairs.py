"""The paper's Table 1, each of its pairs of stores in small; DynamoDB, S3 and SNS are emulators."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmarks import post_notification
from benchmarks.post_notification._options import EMULATORS

REQUESTS = 20
STORAGES = ("mysql", "dynamodb", "redis", "s3", "mongodb")
NOTIFIERS = ("sns", "activemq", "dynamodb", "rabbitmq")
SCHEMA = Path(post_notification.__file__).with_name("result.schema.json")
ROOT = SCHEMA.parents[2]


def measured(storage: str, notifier: str, path: Path) -> dict[str, Any]:
    """The result of a run whose posts are two seconds late, and its notifications not."""
    command = [sys.executable, "-m", "benchmarks.post_notification", "--json", str(path)]
    command += ["--post-storage", storage, "--notifier", notifier, "--blocks", "1"]
    command += ["--requests", str(REQUESTS), "--rate", "20", "--warmup", "2"]
    command += ["--lag-ms", "2000", "--lag-spread", "0"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    return result


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("storage", "notifier"), [*itertools.product(STORAGES, NOTIFIERS)])
def test_each_pair(
    storage: str, notifier: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Without a barrier reads of every kind are wrong, with it none is, and emulators are named."""
    for store in (storage, notifier):
        request.getfixturevalue(f"antipode_{store}")  # Skips, or fails where it is required.
    result = measured(storage, notifier, tmp_path / "out.json")
    assert result["emulators"] == sorted({storage, notifier} & EMULATORS)
    outcomes = {
        (each["summary"]["strategy"], each["summary"]["kind"]): each["summary"]["outcomes"]
        for each in result["rounds"]
    }
    for kind in ("new", "update", "delete"):
        assert outcomes["none", kind]["violation"] > 0
        assert outcomes["barrier", kind]["consistent"] == REQUESTS
