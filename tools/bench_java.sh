#!/usr/bin/env bash
# What Java's operations and reads cost, compared with OpenTelemetry's and with plain clients: bench_java.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=.venv/bin/python
[[ -x $python ]] || python=python3
(cd java && mvn -q --batch-mode --no-transfer-progress -Pbenchmarks -pl antipode-benchmarks -am package -Dmaven.test.skip=true)
exec "$python" -m tools.bench_java "${1:-5}"
