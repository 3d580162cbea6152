"""``python -m tests.agent``."""

from __future__ import annotations

import argparse
import signal
import sys

from ._agent import Agent


def main() -> int:
    """Serve standard input until it ends."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.agent",
        description="Does with Antipode's Python library what lines of JSON on standard input "
        "say, and answers on standard output: the conformance agent of docs/spec/agent.md.",
        epilog='try: echo \'{"id": 1, "op": "hello"}\' | python -m tests.agent',
    )
    parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Agent(sys.stdout) as agent:
            for line in sys.stdin:
                agent.take(line)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
