#!/usr/bin/env bash
# The benchmarks in full size; results go into one folder, the pages made of them into docs/results.
# After an interrupt the same command goes on: what is finished of the same code is not run again.
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

# The code that is measured; without git nothing is known of it, and everything is run.
code=$(git rev-parse HEAD 2>/dev/null && git diff HEAD -- antipode shims benchmarks | sha256sum) || code=

measured=()
measure() {
  local benchmark=$1 file=$out/$1$2.json
  local made="$code ${*:3}"
  echo "== $benchmark$2"
  if [[ -n $code && $fresh == no && -f $file && $(cat "$file.made" 2>/dev/null) == "$made" ]]; then
    echo "finished before"
  else
    # What an earlier run left is not taken for this one's.
    rm -f "$file" "$file.made"
    run "benchmarks.costs.$benchmark" --json "$file" "${@:3}"
    [[ ! -f "$file" ]] || echo "$made" >"$file.made"
  fi
  [[ ! -f "$file" ]] || measured+=("$file")
}
fresh=no
[[ " $* " != *" --fresh "* ]] || fresh=yes
# Few of everything, to see that it works.
few=() turns=() requests=()
if [[ " $* " == *" --quick "* ]]; then
  few=(--rounds 1) turns=(--blocks 1 --turn 0.5) requests=(--requests 5000 --sweep 500)
fi
measure micro "" "${few[@]}"
# Bounds are judged with clients and servers pinned to processors; without pinning it is measured, too.
measure overhead "" "${few[@]}"
measure overhead -as-is --as-is "${few[@]}" --clients redis-py "PyMySQL, MySQL"
measure requests "" "${few[@]}"
measure requests -as-is --as-is "${few[@]}"
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

# Sizes, which no other work of the machine changes: in as many processes as there are processors.
echo "== metadata"
results=docs/results
[[ " $* " != *" --quick "* ]] || results=$out/quick/results
mkdir -p "$results"
run benchmarks.metadata run "${requests[@]}" --json "$results/metadata.json"
run benchmarks.metadata render --results "$results"
# A page for users shows some of the evaluation's figures.
run tools.reference_pages
exit "$status"
