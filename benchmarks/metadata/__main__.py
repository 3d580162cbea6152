"""``python -m benchmarks.metadata``."""

import sys

from ._cli import main
from ._run import quiet

if __name__ == "__main__":
    quiet()
    sys.exit(main())
