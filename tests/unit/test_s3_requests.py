"""How many requests a wait for one object makes, as the guide to S3 says."""

from __future__ import annotations

from collections import Counter

from antipode import WriteId
from antipode_shims._aws.homes import Homes
from antipode_shims.s3._look import Question, Shown, look

WRITE = WriteId("posts", "posts/a@us-east-1", "v1", 490_000)


def test_polls_are_one_request_and_seldom_three() -> None:
    """Of 40 polls in vain three ask the writer's bucket, and list the key here: 46 and 3."""
    homes: Homes[Shown] = Homes()
    requests: Counter[str] = Counter()

    def answer(question: Question) -> dict[object, Shown]:
        present = question.region == "us-east-1"
        # A listing follows a HEAD that found nothing.
        requests[question.region] += len(question.versions) * (1 + (question.whole and not present))
        return dict.fromkeys(question.versions, Shown(present, "PENDING" if present else ""))

    for _ in range(40):
        steps = look([WRITE], "eu-west-1", {}, homes)
        try:
            question = next(steps)
            while True:
                question = steps.send(answer(question))  # type: ignore[arg-type]
        except StopIteration:
            continue
    assert requests == {"": 46, "us-east-1": 3}
