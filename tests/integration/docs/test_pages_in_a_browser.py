"""The site and the README in headless Chromium, in the window of a desk and in that of a phone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.integration.docs._browser import measured

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[3]
DESK, PHONE = 1280, 390
#: One and a half screens of 900 pixels.
MAX_README = 1350
#: A page of a repository as one shows it in a window of 1,280 pixels: our own sheet, in the sizes
#: of GitHub's.
SHEET = """
body { margin: 0 auto; max-width: 830px; font: 16px/1.5 "Segoe UI", "Noto Sans", sans-serif }
h1 { font-size: 2em; line-height: 1.25; margin: 24px 0 16px; padding-bottom: .3em }
h2 { font-size: 1.5em; line-height: 1.25; margin: 24px 0 16px; padding-bottom: .3em }
p, ul, pre, table { margin: 0 0 16px }
pre { font-size: 85%; line-height: 1.45; overflow: auto; padding: 16px }
li { margin-top: .25em }
img { max-width: 100% }
"""

Found = dict[str, Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation of this tree, built."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    subprocess.run([*mkdocs, str(folder)], cwd=ROOT, check=True, timeout=900)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """What the browser finds on every page at both widths."""
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert len(names) > 100
    return measured(site, names, (DESK, PHONE), tmp_path_factory.mktemp("browser"))


def test_nothing_scrolls_sideways(pages: list[Found]) -> None:
    """No page is wider than its window."""
    assert [(it["page"], it["width"], it["sideways"]) for it in pages if it["sideways"] > 0] == []


def test_no_snippet_is_cut(pages: list[Found]) -> None:
    """A reader sees each line of code whole, without scrolling in its box."""
    assert [(it["page"], it["width"], it["snippets"]) for it in pages if it["snippets"]] == []


def test_no_table_is_cut(pages: list[Found]) -> None:
    """All columns of a table are there at once."""
    assert [(it["page"], it["width"], it["tables"]) for it in pages if it["tables"]] == []


def test_no_link_is_broken(pages: list[Found], site: Path) -> None:
    """Each link within the site leads to a file that is there, and to a heading of it."""
    anchors = {it["page"]: set(it["anchors"]) for it in pages}
    broken = set()
    for it in pages:
        own = urlsplit(it["address"])
        for link in it["links"]:
            to = urlsplit(link)
            if (to.scheme, to.netloc) != (own.scheme, own.netloc):
                continue
            path, anchor = unquote(to.path), unquote(to.fragment)
            path += "index.html" if path.endswith("/") else ""
            there = (site / path.lstrip("/")).is_file()
            if not there or (anchor and anchor not in anchors.get(path, {anchor})):
                broken.add((it["page"], link.removeprefix(f"{own.scheme}://{own.netloc}")))
    assert sorted(broken) == []


def test_the_readme_is_one_and_a_half_screens(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What does not fit is on the pages that it links to; no line of its code is cut."""
    markdown = pytest.importorskip("markdown")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = markdown.markdown(text, extensions=["tables", "fenced_code"])
    page = f'<!doctype html><meta charset="utf-8"><style>{SHEET}</style>{body}'
    (tmp_path / "readme.html").write_text(page, encoding="utf-8")
    browser = tmp_path_factory.mktemp("browser")
    (found,) = measured(tmp_path, ["readme.html"], (DESK,), browser)
    assert found["snippets"] == []
    assert found["height"] <= MAX_README
