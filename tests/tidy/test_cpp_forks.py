"""Locks that a process of C++ has once are held while it forks: none stays held in a child."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "cpp"
FILES = sorted(path for room in ("src", "include") for path in (SOURCES / room).rglob("*.*"))
LOCKS = r"(?:std::(?:\w+_)?mutex|TimedMutex|std::once_flag)"
#: Process-wide locks that no child waits for, by file and variable, and why.
FREE = {
    ("grpc/server.cc", "serving->lock_"): "gRPC allows no fork after its first call",
    ("antipode/opentelemetry.h", "instrumented->lock"): "held as a program begins and ends",
    ("mysql/connection.cc", "begun"): "held by the process's first connection alone",
}
CLASS = re.compile(
    r"^(?:struct|class) ([\w:]+)(?: final)?(?: : [^{;]+)? \{\n(.*?)^\};", re.MULTILINE | re.DOTALL
)
#: A variable that lives as long as the process: of a namespace, or static within a function.
PLAIN = re.compile(
    r"^(?:inline |static |  +static (?:inline )?(?!constexpr))([A-Z][\w:]*|std::\w+) (\w+)(?:;|\{)"
    r"|^(std::\w+|[A-Z]\w+) (\w+);",
    re.MULTILINE,
)
MADE = re.compile(
    r"^ *static (?:const )?auto[*&] (?:const )?(\w+) = "
    r"(?:\*?new ([\w:]+)|\*?\[\] \{[^}]*?new ([\w:]+))",
    re.MULTILINE,
)


def classes_in(text: str) -> dict[str, str]:
    """What the classes of a text have, by name."""
    return {each[1]: each[2] for each in CLASS.finditer(text)}


def locks_of(name: str, classes: dict[str, str]) -> list[str]:
    """The members of a type that are locks, those of its members included; empty for none."""
    if re.fullmatch(LOCKS, name):
        return [""]
    found = []
    for line in classes.get(name, "").splitlines():
        member = re.match(r"  (?:mutable )?([\w:]+) (\w+)(?:;| =|\{)", line)
        if member and member[1] != name:
            found += [f"{member[2]}.{each}".rstrip(".") for each in locks_of(member[1], classes)]
    return found


def process_wide(text: str, classes: dict[str, str]) -> list[tuple[str, str]]:
    """Each lock that a file has once for its process: the variable, and its member."""
    variables = [(each[2] or each[3], each[1]) for each in MADE.finditer(text)]
    variables += [(each[1] or each[3], each[2] or each[4]) for each in PLAIN.finditer(text)]
    return [(name, lock) for kind, name in variables for lock in locks_of(kind, classes)]


def held(text: str, name: str, lock: str) -> bool:
    """Whether a file has a lock held while the process forks."""
    target = rf"(?:made|{name})->{re.escape(lock)}" if lock else rf"\*?(?:made|{name})"
    return bool(re.search(rf"HoldWhileForking\(ForkRank::k\w+, {target}[,)]", text))


def test_each_lock_of_the_process_is_held_while_it_forks() -> None:
    """A thread that is not in the child may have any of them: its first caller would hang."""
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    everywhere = classes_in("\n".join(texts.values()))
    seen, registered = set(), 0
    for path, text in texts.items():
        file = path.relative_to(SOURCES).as_posix().split("/", 1)[1]
        registered += len(re.findall(r"HoldWhileForking\(ForkRank::", text))
        for name, lock in process_wide(text, everywhere | classes_in(text)):
            where = (file, f"{name}->{lock}".removesuffix("->"))
            seen.add(where)
            assert where in FREE or held(text, name, lock), where
    assert seen.issuperset(FREE)
    assert len(seen) == registered + len(FREE), "each that is held is seen here, too"
