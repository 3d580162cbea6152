"""``python -m examples.posts``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from examples.posts.run import main
    except ImportError as error:
        sys.exit(
            f"error: {error}: pip install -e '.[examples]' -e testing"
        )
    sys.exit(main())
