#!/usr/bin/env bash
# Look for faults that compilers do not see, by clang-tidy and cpp/.clang-tidy: tidy_cpp.sh [core], without it the
# shims, the adapters and the agent, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools/build_cpp.sh tidy
cd cpp

began=$SECONDS
case ${1:-} in
    core) sources=(src/*.cc src/{barrier,dry_run,lineage,propagation,request,runtime}/*.cc) ;;
    *) sources=(src/*.cc src/*/*.cc agent/*.cc) ;;
esac
# What it says of headers of others, and how often, is no finding.
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-14 --quiet -p build/tidy >build/tidy/found.log 2>build/tidy/tidy.log ||
    { cat build/tidy/found.log; grep -v 'warnings generated' build/tidy/tidy.log; exit 1; }
echo "C++ (tidy): nothing in ${#sources[@]} sources, in $((SECONDS - began)) s"
