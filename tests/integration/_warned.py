"""What the library warns of in processes of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: What is said where clients, rules or their order are not as they should be.
OF_SETTINGS = re.compile(r"rule|reads_from|setup\(\)|instrumented|another name|ANTIPODE_")
#: Run first by a process whose PYTHONPATH has it as a ``sitecustomize.py``.
_FIRST = """
import logging, os
told = logging.FileHandler({path!r}, "a")
told.setFormatter(logging.Formatter(f"{{os.environ.get('OTEL_SERVICE_NAME')}}: %(message)s"))
told.setLevel(logging.WARNING)
logging.getLogger("antipode").addHandler(told)
"""


def note_warnings(folder: Path, path: Path) -> None:
    """Have processes with *folder* on their path write the library's warnings to *path*."""
    (folder / "sitecustomize.py").write_text(_FIRST.format(path=str(path)), encoding="utf-8")
