#!/usr/bin/env bash
# Many barriers over each of the stores named, while these are delayed, cut and promoted; then many
# responses over mixed transports.
# Environment: ANTIPODE_LOAD_BARRIERS (how many, over each), ANTIPODE_LOAD_RESPONSES (how many).
set -euo pipefail
python=$1
shift

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
names=$*
export ANTIPODE_REQUIRE_STORES=${names// /,}
"$python" -m pytest -q -ra --durations=6 tests/load
