"""Benchmarks: programs that measure the library the way its documentation says."""

import os
from pathlib import Path

# Where `make stores` puts the servers that the system has no package of; installed ones come first.
_STORES = Path(__file__).resolve().parents[1] / ".stores" / "bin"
os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(_STORES)))
