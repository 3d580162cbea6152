#!/usr/bin/env bash
# The benchmarks in full size; results go into one folder, the evaluation's pages into docs/results.
set -euo pipefail
python=$1 out=$2
shift 2
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
mkdir -p "$out"

echo "== micro"
"$python" -m benchmarks.micro --json "$out/micro.json"

echo "== overhead"
"$python" -m benchmarks.overhead --json "$out/overhead.json"

echo "== evaluation: what is finished is not run again"
"$python" -m benchmarks.evaluation --out "$out" "$@"
