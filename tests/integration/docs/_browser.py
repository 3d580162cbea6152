"""The project's pages in a real browser: headless Chromium, which sends home what it measures.

A page of the test shows each page of the site in a frame of a given width, as a window of that
width would, measures it by what `MEASURE` says, and posts all answers at once.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from antipode_testing import wait_until
from antipode_testing._process import ServerProcess, find_executable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

INSTALL = "tools/apt_install.sh chromium"
#: Nothing but the page is asked for, and nothing of an earlier run is known.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
HEIGHT = 900
TIMEOUT_S = 600.0
#: What is found on a page: how far it scrolls, what is cut, where its links lead, its anchors.
MEASURE = """
<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
const pages = PAGES, widths = WIDTHS, home = [];
function named(found) { return found.textContent.trim().split("\\n")[0].slice(0, 80); }
function cut(found) { return found.scrollWidth > found.clientWidth + 1; }
function measure(frame, page, width) {
  const shown = frame.contentDocument, root = shown.scrollingElement;
  const links = [...shown.querySelectorAll("a[href], img[src]")];
  return {
    page, width, address: location.href, height: root.scrollHeight,
    sideways: root.scrollWidth - root.clientWidth,
    snippets: [...shown.querySelectorAll("pre, pre > code")].filter(cut).map(named),
    tables: [...shown.querySelectorAll(".md-typeset__scrollwrap")].filter(cut).map(named),
    links: links.map((link) => link.href || link.src),
    anchors: [...shown.querySelectorAll("[id]")].map((found) => found.id),
  };
}
async function show(page, width) {
  const frame = document.createElement("iframe");
  frame.style = `border:0; width:${width}px; height:${HEIGHT}px`;
  await new Promise((done) => {
    frame.onload = done;
    frame.src = page;
    document.body.replaceChildren(frame);
  });
  await frame.contentDocument.fonts.ready;
  home.push(measure(frame, page, width));
}
(async () => {
  for (const width of widths) for (const page of pages) await show(page, width);
  await fetch("/measured", { method: "POST", body: JSON.stringify(home) });
})().catch((error) => fetch("/measured", { method: "POST", body: JSON.stringify(String(error)) }));
</script>
"""


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder and the page that measures; takes the answers."""

    def __init__(self, page: bytes, answers: list[Any], *given: Any, **named: Any) -> None:
        self.page, self.answers = page, answers
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        """A file of the folder, or the page."""
        if self.path != "/measure":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def do_POST(self) -> None:
        """The answers."""
        self.answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _served(folder: Path, page: bytes, answers: list[Any]) -> Iterator[str]:
    handler = partial(_Handler, page, answers, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def measured(
    folder: Path, pages: Sequence[str], widths: Sequence[int], directory: Path
) -> list[dict[str, Any]]:
    """What Chromium finds on each page of *folder* at each width.

    Args:
        folder: what is served.
        pages: below it.
        widths: of the window, in pixels.
        directory: an empty one, for the browser.
    """
    page = MEASURE.replace("PAGES", json.dumps([f"/{name}" for name in pages]))
    page = page.replace("WIDTHS", json.dumps(list(widths))).replace("HEIGHT", str(HEIGHT))
    answers: list[Any] = []
    chromium = find_executable("chromium", install=INSTALL)
    with _served(folder, page.encode(), answers) as address:
        browser = ServerProcess(
            "chromium",
            [
                str(chromium),
                *ARGUMENTS,
                f"--window-size={max(widths)},{HEIGHT}",
                f"--user-data-dir={directory}",
                f"{address}/measure",
            ],
            directory=directory,
            ready=lambda: True,
        )
        browser.start()
        try:
            wait_until(
                lambda: bool(answers) or not browser.running,
                what="the browser to measure the pages",
                timeout_s=TIMEOUT_S,
                interval_s=0.05,
            )
        finally:
            browser.kill()
    assert answers, "the browser ended"
    assert isinstance(answers[0], list), answers[0]
    return answers[0]
