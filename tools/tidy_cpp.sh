#!/usr/bin/env bash
# Look for faults that compilers do not see, by clang-tidy and cpp/.clang-tidy: tidy_cpp.sh [changed]
# All sources, which are noted in tools/tidied.json where nothing is found; or those that changed since (tools/tidied.py).
# In a clone without that file "changed" are the sources of the core.
# Environment: PYTHON.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-all}$([[ -e tools/tidied.json ]] || echo " unnoted") in
    "changed unnoted")
        echo "C++ (tidy): tools/tidied.json is not there, so the core is read, and the rest left to \`make nightly\`"
        mapfile -t sources < <(cd cpp && ls src/*.cc src/{barrier,dry_run,lineage,propagation,request,runtime}/*.cc)
        ;;
    changed)
        changed=$("${PYTHON:-python3}" -m tools.tidied changed)
        mapfile -t sources < <(printf '%s' "${changed:+$changed$'\n'}")
        ;;
    *) mapfile -t sources < <(cd cpp && ls src/*.cc src/*/*.cc agent/*.cc) ;;
esac
if ((${#sources[@]} == 0)); then
    echo "C++ (tidy): left out: no source differs from tools/tidied.json"
    exit 0
fi
tools/build_cpp.sh tidy
cd cpp

began=$SECONDS
# What it says of headers of others, and how often, is no finding.
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-14 --quiet -p build/tidy >build/tidy/found.log 2>build/tidy/tidy.log ||
    { cat build/tidy/found.log; grep -v 'warnings generated' build/tidy/tidy.log; exit 1; }
echo "C++ (tidy): nothing in ${#sources[@]} sources, in $((SECONDS - began)) s"
cd ..
[[ ${1:-} == changed ]] || "${PYTHON:-python3}" -m tools.tidied record "${sources[@]}"
