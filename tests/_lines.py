"""Files of lines, read while another process may still write them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def records_in(path: Path) -> list[dict[str, Any]]:
    """The JSON records in a file, or in all files of a folder: a whole line each.

    A read may meet a write halfway, also of a line that its writer hands over in one call: a last
    line without its end is not there yet.
    """
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    texts = [file.read_text(encoding="utf-8") for file in files]
    lines = [line for text in texts for line in text.split("\n")[:-1]]
    return [json.loads(line) for line in lines]
