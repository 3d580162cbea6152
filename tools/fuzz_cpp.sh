#!/usr/bin/env bash
# Fuzz what the C++ library reads from outside: fuzz_cpp.sh RUNS TARGET..., of decode, baggage, session, mongodb, mysql, redis.
# Two targets at a time, from the corpus in the tree (an input a line, in base64); what is found lies in cpp/build/fuzz, and
# fails it. KEEP=1 adds inputs that reach new code to the corpus.
# Its log there shows how far a target is.
set -euo pipefail
runs=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/build_cpp.sh fuzz

# Allocations are recorded without their stacks, which would take a seventh of the time: run a finding again for them.
export ASAN_OPTIONS=malloc_context_size=0
began=$SECONDS
fuzz() {
    local inputs found kept="../../fuzz/corpus/$1.base64" left now line count=0
    inputs=$(mktemp -d) found=$(mktemp -d)
    trap 'rm -rf "$inputs" "$found"' RETURN
    while read -r line; do base64 -d <<<"$line" >"$inputs/$((++count))"; done <"$kept"
    : >"$1.log"
    # In processes of ten million: after fifty million one did only a third as many runs a second.
    for ((left = runs; left > 0; left -= now)); do
        now=$((left < 10000000 ? left : 10000000))
        # New inputs go to the first folder, and only there.
        "./$1_fuzz" -runs="$now" -max_len="$2" "$found" "$inputs" >>"$1.log" 2>&1 ||
            { tail -40 "$1.log"; return 1; }
        if [[ -n ${KEEP:-} ]]; then
            { cat "$kept"; find "$found" -type f -exec base64 -w 0 {} \; -exec echo \;; } | LC_ALL=C sort -u -o "$kept"
        fi
        find "$found" -mindepth 1 -delete
    done
}
cd cpp/build/fuzz
pending=()
for target in "$@"; do
    # Long headers and columns cost much and find no more.
    most=192
    [[ $target == baggage || $target == mysql ]] || most=2048
    fuzz "$target" "$most" &
    pending+=($!)
    ((${#pending[@]} < 2)) || { wait "${pending[0]}"; pending=("${pending[@]:1}"); }
done
for each in "${pending[@]}"; do wait "$each"; done
echo "C++ (fuzz): $runs runs of each of $* passed in $((SECONDS - began)) s"
