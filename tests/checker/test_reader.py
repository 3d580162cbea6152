"""Histories that are no histories: refused with the line and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from antipode.checker import ExhaustedError, History, HistoryError, Operation, check, load, save

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "spec" / "history.schema.json").read_text(encoding="utf-8"))
)
FIRST = '{"kind": "history", "v": 1}\n'
WRITE = '{"kind": "write", "process": "p", "datastore": "d", "key": "k", "version": "1"}\n'
READ = WRITE.replace("write", "read").replace('"p"', '"q"')
SEND = '{"kind": "send", "process": "p", "message": "m"}\n'
RECEIVE = '{"kind": "receive", "process": "q", "message": "m"}\n'
HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.jsonl"))


def end(operations: Any) -> str:
    """The last line."""
    return json.dumps({"kind": "end", "operations": operations}) + "\n"


def saved(folder: Path, text: str, name: str = "h.jsonl") -> Path:
    """A file with *text*."""
    path = folder / name
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    return path


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "the history is cut off: its last line is not of kind 'end'"),
        (FIRST, 1, "the history is cut off: its last line is not of kind 'end'"),
        (FIRST + WRITE, 2, "the history is cut off: its last line is not of kind 'end'"),
        (FIRST + WRITE[:-20], 2, "the line is cut off: it has no line feed"),
        (FIRST + end(0)[:-1], 2, "the line is cut off: it has no line feed"),
        (FIRST + WRITE + end(2), 3, "it counts 2 operations, and there are 1"),
        (FIRST + WRITE + '{"kind": "end"}\n', 3, "it counts None operations, and there are 1"),
        (FIRST + end(0) + WRITE, 3, "it follows the line of kind 'end'"),
        (WRITE + end(1), 1, "the first line of a history is of kind 'history'"),
        (FIRST.replace("1", "2") + end(0), 1, "its version is 2, and this program reads version 1"),
        (FIRST + "{\n" + end(0), 2, "it is no JSON"),
        (FIRST + "\udcff\n" + end(0), 2, "it is no JSON"),
        (FIRST + "[" * 100_000 + "\n", 2, "it is no JSON"),
        (FIRST + "[1]\n", 2, "it is no JSON object"),
        (FIRST + '{"kind": "write", "kind": "read"}\n', 2, "it has a name twice"),
        (FIRST + FIRST, 2, "its kind is 'history'"),
        (FIRST + WRITE.replace("write", "delete"), 2, "its kind is 'delete'"),
        (FIRST + WRITE.replace('"process"', '"pid"'), 2, "it has no 'process'"),
        (
            FIRST + WRITE.replace('"1"', "1"),
            2,
            "its 'version' is 1, not a text of at least one character",
        ),
        (
            FIRST + WRITE.replace('"1"', "null"),
            2,
            "its 'version' is None, not a text of at least one character",
        ),
        (FIRST + READ.replace(', "version": "1"', ""), 2, "it has no 'version'"),
        (
            FIRST + SEND.replace('"m"', '""'),
            2,
            "its 'message' is '', not a text of at least one character",
        ),
        (
            FIRST + WRITE.replace('"1"', '"1", "site": {"line": 1}'),
            2,
            "it has no 'file'",
        ),
        (
            FIRST + WRITE.replace('"1"', '"1", "site": "x.py"'),
            2,
            "its 'site' needs a 'file', a 'line' and a 'function'",
        ),
        (
            FIRST + '{"kind": "initial", "datastore": "d", "key": "k", "version": "0"}\n' * 2,
            3,
            "d:k has an initial version already",
        ),
    ],
)
def test_a_malformed_history_is_refused(tmp_path: Path, text: str, line: int, reason: str) -> None:
    """The error names the file, the line and the reason."""
    path = saved(tmp_path, text)
    with pytest.raises(HistoryError) as error:
        load([path])
    assert str(error.value) == f"{path}:{line}: {reason}"


@pytest.mark.parametrize(
    ("lines", "number", "reason"),
    [
        ([RECEIVE], 2, "message 'm' was never sent"),
        ([SEND, SEND], 3, "message 'm' was sent before, at {path}:2"),
        (
            [RECEIVE.replace('"q"', '"p"'), SEND],
            2,
            "message 'm' was received before it can have been sent, at {path}:3",
        ),
        (
            [
                RECEIVE,
                SEND.replace('"m"', '"n"').replace('"p"', '"q"'),
                RECEIVE.replace('"m"', '"n"').replace('"q"', '"p"'),
                SEND,
            ],
            2,
            "message 'm' was received before it can have been sent, at {path}:5",
        ),
    ],
)
def test_what_cannot_have_happened_is_refused(
    tmp_path: Path, lines: list[str], number: int, reason: str
) -> None:
    """Messages that contradict the order of processes are an error, and no violation."""
    path = saved(tmp_path, FIRST + "".join(lines) + end(len(lines)))
    with pytest.raises(HistoryError) as error:
        check(load([path]))
    assert str(error.value) == f"{path}:{number}: {reason.format(path=path)}"


def test_a_receive_may_be_listed_before_its_send(tmp_path: Path) -> None:
    """Parts of several processes have no order among each other."""
    saved(tmp_path, FIRST + RECEIVE + READ + end(2), "a.jsonl")
    saved(tmp_path, FIRST + WRITE + SEND + end(2), "b.jsonl")
    history = load([tmp_path])
    assert [one.kind for one in history.operations] == ["receive", "read", "write", "send"]
    assert str(check(history)) == "ok"


def test_a_process_is_in_one_part(tmp_path: Path) -> None:
    """Which of its operations came first nobody could say otherwise."""
    one, two = (saved(tmp_path, FIRST + WRITE + end(1), name) for name in ("a.jsonl", "b.jsonl"))
    with pytest.raises(HistoryError, match=r"b\.jsonl:2: process 'p' has operations in .*a\.jsonl"):
        load([one, two])
    assert len(load([one, one, tmp_path / "a.jsonl"]).operations) == 1


def test_paths_may_be_texts(tmp_path: Path) -> None:
    """One path or several, as texts or paths, are read and written alike."""
    path = saved(tmp_path, FIRST + WRITE + end(1))
    read = load([path])
    assert load(str(path)).operations == load(path).operations == load([str(path)]).operations
    save(read, str(path))
    assert load(str(path)).operations == read.operations


def test_a_folder_without_histories_is_refused(tmp_path: Path) -> None:
    """Nothing recorded is no ``ok``."""
    with pytest.raises(HistoryError, match=r"has no \.jsonl file in it"):
        load([tmp_path])
    with pytest.raises(HistoryError, match="cannot read"):
        load([tmp_path / "missing.jsonl"])


def test_a_memory_limit_ends_reading(tmp_path: Path) -> None:
    """A history that does not fit is given up before it fills the machine."""
    many = "".join(WRITE.replace('"1"', f'"{n}"') for n in range(20_000))
    path = saved(tmp_path, FIRST + many + end(20_000))
    with pytest.raises(ExhaustedError, match="memory limit of 1 MiB is reached"):
        load([path], memory_limit_mib=1)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_what_is_saved_is_loaded(path: Path, tmp_path: Path) -> None:
    """A history that is written again is the same, but for where it lies."""
    before, copy = load([path]), tmp_path / "copy.jsonl"
    save(before, copy)
    after = load([copy])
    assert after.initial == before.initial
    assert [one._replace(where="") for one in after.operations] == [
        one._replace(where="") for one in before.operations
    ]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_histories_fit_the_schema(path: Path) -> None:
    """Each line of the histories here is what the specification's schema says."""
    for line in path.read_text(encoding="utf-8").splitlines():
        SCHEMA.validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "write", "process": "p", "datastore": "d", "key": "k", "version": None},
        {"kind": "read", "process": "p", "datastore": "d", "key": "k"},
        {"kind": "send", "process": "p"},
        {"kind": "history", "v": 2},
        {"kind": "other"},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(line: dict[str, Any]) -> None:
    """The schema is no looser than the reader."""
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(line)


@pytest.mark.parametrize(
    "one",
    [
        Operation("delete", "p", None, "d", "k", "1"),
        Operation("write", "p", None, "d", "k"),
        Operation("write", "p", None, "", "k", "1"),
        Operation("send", "p"),
    ],
)
def test_operations_are_checked_without_a_file(one: Operation) -> None:
    """A history that a program makes is held to the same rules."""
    with pytest.raises(HistoryError):
        History((one,))
