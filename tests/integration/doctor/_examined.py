"""What doctor says of this process, as if its application were imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode_cli._doctor import examine

if TYPE_CHECKING:
    from antipode_cli._check import Check


def examined() -> list[Check]:
    """All that it says."""
    return list(examine(imported=True, timeout_s=5, objects=[]))


def of(subject: str) -> list[str]:
    """The verdicts on a subject."""
    return [each.verdict.value for each in examined() if each.subject == subject]


def told() -> list[tuple[str, str, str]]:
    """What is not in order, or not known: the subject, the verdict and the words."""
    return [
        (each.subject, each.verdict.value, f"{each.said}: {each.todo}")
        for each in examined()
        if each.verdict.value != "ok"
    ]


def problems() -> list[str]:
    """The subjects that are a problem."""
    return [subject for subject, verdict, _ in told() if verdict == "problem"]
