"""One check of ``antipode doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What came of a check, in the word that is printed."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found.

    Attributes:
        subject: what it is about, in a word or two.
        said: what was found.
        todo: what to do about it; empty where nothing is to be done.
    """

    verdict: Verdict
    subject: str
    said: str
    todo: str = ""


def ok(subject: str, said: str) -> Check:
    """A check that found everything in order."""
    return Check(Verdict.OK, subject, said)


def problem(subject: str, said: str, todo: str) -> Check:
    """A check that found something wrong."""
    return Check(Verdict.PROBLEM, subject, said, todo)


def unknown(subject: str, said: str, todo: str = "") -> Check:
    """A check that cannot be made from here."""
    return Check(Verdict.UNKNOWN, subject, said, todo)
