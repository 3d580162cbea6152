"""Which sources of C++ clang-tidy reads in CI: all that changed since it found nothing in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import tidied

SOURCE = "src/barrier/one.cc"
OTHER = "src/barrier/other.cc"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sources, of which one includes a header that includes another."""
    for name, text in {
        SOURCE: '#include "barrier/near.h"\n',
        OTHER: "#include <vector>\n",
        "src/barrier/near.h": '#include "antipode/far.h"\n',
        "include/antipode/far.h": "// far\n",
        **dict.fromkeys(tidied.DECIDING, "1"),
    }.items():
        path = tmp_path / "cpp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(tidied, "CPP", tmp_path / "cpp")
    monkeypatch.setattr(tidied, "TIDIED", tmp_path / "tidied.json")
    return tmp_path / "cpp"


def test_all_are_read_before_anything_is_noted(tree: Path) -> None:
    """A clone without a record has no source that is left out."""
    assert tree.is_dir()
    assert tidied.changed() == [SOURCE, OTHER]


@pytest.mark.parametrize(
    ("touched", "read_again"),
    [
        (SOURCE, [SOURCE]),
        ("src/barrier/near.h", [SOURCE]),
        ("include/antipode/far.h", [SOURCE]),
        (".clang-tidy", [SOURCE, OTHER]),
    ],
)
def test_a_change_is_read_again_with_all_that_includes_it(
    tree: Path, touched: str, read_again: list[str]
) -> None:
    """A source is read again if it, a header it includes or the checks changed, and no other."""
    tidied.record([SOURCE, OTHER])
    assert tidied.changed() == []
    with (tree / touched).open("a", encoding="utf-8") as file:
        file.write("// changed\n")
    tidied._included.cache_clear()
    assert tidied.changed() == read_again


def test_every_include_of_ours_is_followed() -> None:
    """Whatever a source of the library includes by quotes is found, so that its changes count."""
    for source in tidied.sources():
        path = tidied.CPP / source
        found = {each.name for each in tidied._included(path.resolve())}
        named = set(tidied._INCLUDE.findall(path.read_text(encoding="utf-8")))
        assert {Path(name).name for name in named} == found, source
