"""The agents of the languages: what starts each, where it was built."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import pytest

from tests.agent import _values
from tests.agent._pure import Pure
from tests.agent.client import AgentFailed, AgentProcess, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: Where each is once its verb of the Makefile ran; `ANTIPODE_AGENT_<LANGUAGE>` names another.
BUILT = {
    "cpp": ROOT / "cpp" / "build" / "dev" / "antipode_agent",
    "java": ROOT / "java" / "antipode-agent" / "target" / "antipode-agent.jar",
}
LANGUAGES = ("python", *BUILT)
#: Languages whose agent must be there, with commas between them; CI names all.
REQUIRE_VARIABLE = "ANTIPODE_REQUIRE_AGENTS"
#: Of clients that store lineages beside the application's own keys and rows, which the contract of
#: shims leaves to each: those of C++, and of Redis in Java, hand out their libraries' own replies,
#: and do not.
BESIDE_OWN_VALUES = frozenset(
    {
        *(
            f"decide {store} {kind}"
            for store in ("mariadb", "mysql")
            for kind in ("pattern", "select", "sought")
        ),
        "decide redis keys",
    }
)
#: Operations that a language does not have yet; of `decide` also those of one store or one kind, as
#: `decide redis` or `decide redis look_at`; `script automatic` is scripts with automatic barriers,
#: `script automatic primary` those whose stale reads go to the primary, `open_scope baggage`
#: requests whose members of others go on with what they send. One that it has must not stand here.
LACKING = {
    "cpp": frozenset(
        {
            # The guard as a conversation is Python's until now, and calls are.
            "call",
            "guard",
            # Reports are Python's and Java's.
            "headers finding_ids",
            "open_scope baggage",
            # It refuses the setting.
            "script automatic primary",
            # ActiveMQ and the stores of AWS are Python's and Java's.
            "decide activemq",
            "decide dynamodb",
            "decide s3",
            "decide sns",
            # PostgreSQL is Python's until now.
            "decide postgresql",
            *BESIDE_OWN_VALUES,
        }
    ),
    "java": frozenset({"call", "decide redis keys", "guard"}),
}


class Answers(Protocol):
    """What answers the operations of agents."""

    def ask(self, op: str, **arguments: object) -> Any:
        """The value of an operation; fails as `AgentProcess.ask` does."""


class InProcess:
    """Python's library in this process, without an agent; for operations that need no scope."""

    def __init__(self) -> None:
        self._pure = Pure()

    def ask(self, op: str, **arguments: object) -> Any:
        """The value of an operation, as it would be sent."""
        try:
            return json.loads(json.dumps(getattr(self._pure, f"op_{op}")(arguments)))
        except _values.Unsupported as error:
            raise Unsupported(str(error)) from None


def command(language: str) -> list[str]:
    """What starts the agent of a language; skips the test where it was not built."""
    if language == "python":
        return [sys.executable, "-m", "tests.agent"]
    variable = f"ANTIPODE_AGENT_{language.upper()}"
    program = os.environ.get(variable) or str(BUILT[language])
    is_jar = program.endswith(".jar")
    found = shutil.which(program, mode=os.F_OK if is_jar else os.F_OK | os.X_OK)
    if found is None:
        if variable in os.environ:
            pytest.fail(f"{variable} names no program: {os.environ[variable]}", pytrace=False)
        not_built(language, "the agent")
    return ["java", "-jar", found] if is_jar else [found]


def not_built(language: str, what: str) -> NoReturn:
    """Skip a test that needs *what* of a language; fail where it must be there."""
    missing = f"{what} of {language} is not built: `make {language}`"
    if language in os.environ.get(REQUIRE_VARIABLE, "").split(","):
        pytest.fail(f"{missing} ({REQUIRE_VARIABLE} names it)", pytrace=False)
    pytest.skip(missing)


def agents(language: str) -> Iterator[AgentProcess]:
    """An agent that runs, for a fixture."""
    with AgentProcess(command(language)) as running:
        yield running


def asked(agent: Answers, op: str, **arguments: object) -> Any:
    """The value of an operation; skips the test where the agent's language lacks it."""
    language = agent.ask("hello")["language"]
    words = words_of(op, **arguments)
    try:
        value = agent.ask(op, **arguments)
    except (AgentFailed, Unsupported) as error:
        # A setting that a language does not have makes no sense to its agent.
        is_senseless = isinstance(error, AgentFailed) and words[1:2] != ["automatic"]
        if is_senseless or not lacks(language, words):
            raise
        pytest.skip(str(error))
    assert not lacks(language, words), f"{language} has {words[-1]!r}: take it out of LACKING"
    return value


def words_of(op: str, **arguments: object) -> list[str]:
    """What names an operation in `LACKING`."""
    words = [op, *(str(arguments[name]) for name in ("store", "kind") if name in arguments)]
    script = arguments.get("script")
    if isinstance(script, dict) and "barriers" in script.get("settings", {}):
        words.append("automatic")
        if script["settings"].get("on_stale") == "primary":
            words.append("primary")
    return words


def lacks(language: str, words: list[str]) -> bool:
    """Whether a language does not have what *words* name."""
    named = {" ".join(words[:end]) for end in range(1, len(words) + 1)}
    return not named.isdisjoint(LACKING.get(language, ()))
