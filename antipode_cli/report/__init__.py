"""Reports on the records of a dry run. For the command line and the pytest plugin.

Never imported by the core: a process that only records does not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ._accepted import accept
from ._baseline import baseline_text, read_baseline
from ._findings import finding_id, report
from ._model import FailOn, Finding, LintFinding, Place, Report
from ._records import Records, RecordsError, Site, load
from ._text import Line, Span, notes, plain, summary, text_lines

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "FORMATS",
    "FailOn",
    "Finding",
    "Format",
    "Line",
    "LintFinding",
    "Place",
    "Records",
    "RecordsError",
    "Report",
    "Site",
    "Span",
    "accept",
    "baseline_text",
    "finding_id",
    "load",
    "notes",
    "plain",
    "read_baseline",
    "render",
    "report",
    "summary",
    "text_lines",
]

Format = Literal["text", "html", "junit", "json", "github"]
FORMATS: tuple[Format, ...] = ("text", "html", "junit", "json", "github")


def render(found: Report, wanted: Format) -> str:
    """*found* in one of the formats, without colours."""
    return _renderer(wanted)(found)


def _renderer(wanted: Format) -> Callable[[Report], str]:
    if wanted == "html":
        from ._html import html_text

        return html_text
    if wanted == "junit":
        from ._junit import junit_text

        return junit_text
    if wanted == "json":
        from ._json import json_text

        return json_text
    if wanted == "github":
        from ._github import github_text

        return github_text
    return lambda found: plain(text_lines(found))
