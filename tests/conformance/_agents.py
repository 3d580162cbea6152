"""The agents of the languages: what starts each, where it was built."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
    "java": frozenset({"decide redis keys"}),
}


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
        missing = f"the agent of {language} is not built: `make {language}`"
        if language in os.environ.get(REQUIRE_VARIABLE, "").split(","):
            pytest.fail(f"{missing} ({REQUIRE_VARIABLE} names it)", pytrace=False)
        pytest.skip(missing)
    return ["java", "-jar", found] if is_jar else [found]


def agents(language: str) -> Iterator[AgentProcess]:
    """An agent that runs, for a fixture."""
    with AgentProcess(command(language)) as running:
        yield running


def asked(agent: AgentProcess, op: str, **arguments: object) -> Any:
    """The value of an operation; skips the test where the agent's language lacks it."""
    language = agent.ask("hello")["language"]
    words = [op, *(str(arguments[name]) for name in ("store", "kind") if name in arguments)]
    script = arguments.get("script")
    if isinstance(script, dict) and "barriers" in script.get("settings", {}):
        words.append("automatic")
        if script["settings"].get("on_stale") == "primary":
            words.append("primary")
    named = {" ".join(words[:end]) for end in range(1, len(words) + 1)}
    lacks = not named.isdisjoint(LACKING.get(language, ()))
    try:
        value = agent.ask(op, **arguments)
    except (AgentFailed, Unsupported) as error:
        # A setting that a language does not have makes no sense to its agent.
        if not lacks or (isinstance(error, AgentFailed) and words[1:2] != ["automatic"]):
            raise
        pytest.skip(str(error))
    assert not lacks, f"{language} has {words[-1]!r}: take it out of LACKING"
    return value
