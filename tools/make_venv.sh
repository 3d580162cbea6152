#!/usr/bin/env bash
# Make the virtual environment once, with a Python that is new enough and complete.
set -euo pipefail
python=$1 venv=$2

if [[ -x $venv/bin/python ]]; then
    exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "error: '$python' is not Python 3.10 or later; name one: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    # Debian and Ubuntu ship the part of Python that makes virtual environments as a package of its own.
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    "$(dirname "$0")/apt_install.sh" "$package"
fi
if ! "$python" -m venv "$venv"; then
    rm -rf "$venv"
    echo "error: '$python' cannot make a virtual environment in $venv" >&2
    exit 1
fi
# pip of Python 3.11 and before tries all releases of OpenTelemetry for minutes, and finds none that go
# together, on each day on which its core is released before its instrumentations.
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip; then
    rm -rf "$venv"
    echo "error: pip cannot be upgraded in $venv" >&2
    exit 1
fi
