"""``python -m antipode``: the command line program."""

from __future__ import annotations

import sys

from antipode_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
