#!/usr/bin/env bash
# The benchmarks in full size; results go into one folder, the pages made of them into docs/results.
set -euo pipefail
python=$1 out=$2
shift 2
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
mkdir -p "$out"

# What fails says so, and keeps nothing else from being measured; an interrupt ends everything.
interrupted=130
status=0
run() {
  "$python" -m "$@" || status=$?
  ((status != interrupted)) || exit "$interrupted"
}

measured=()
measure() {
  local benchmark=$1 file=$out/$1$2.json
  echo "== $benchmark$2"
  # What an earlier run left is not taken for this one's.
  rm -f "$file"
  run "benchmarks.$benchmark" --json "$file" "${@:3}"
  [[ ! -f "$file" ]] || measured+=("$file")
}
# Few of everything, to see that it works.
few=() turns=()
[[ " $* " != *" --quick "* ]] || few=(--rounds 1) turns=(--blocks 1 --turn 0.5)
measure micro "" "${few[@]}"
for benchmark in overhead requests; do
  measure "$benchmark" "" "${few[@]}"
  measure "$benchmark" -as-is --as-is "${few[@]}"
done
measure throughput "" "${turns[@]}"

echo "== evaluation: what is finished is not run again"
run benchmarks.evaluation --out "$out" "$@"

# The page comes last: results name the commit, and whether files differ from it.
if ((${#measured[@]})); then
  echo "== costs: the page of micro, overhead, requests and throughput"
  # As the evaluation's, pages of a quick run lie beside it.
  results=docs/results
  [[ " $* " != *" --quick "* ]] || results=$out/quick/results
  run benchmarks.costs collect "${measured[@]}" --results "$results"
fi
exit "$status"
