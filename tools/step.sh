#!/usr/bin/env bash
# Run one step of a verb and note what it took: step.sh NAME COMMAND...
# A line for each goes to build/ci/steps.jsonl: seconds of the clock and of processors, and how it ended.
# tools/ci_summary.py says why each step is there, and makes tables of the lines.
# With ANTIPODE_KEEP_GOING=1, as `make nightly` has it, a step that failed does not end the verb: what it said
# lies in build/ci/NAME.log. An interrupt does.
set -uo pipefail
name=$1
shift
mkdir -p build/ci

run() {
    if [[ -n ${ANTIPODE_KEEP_GOING:-} ]]; then
        echo "==== $name"
        "$@" 2>&1 | tee "build/ci/$name.log"
    else
        "$@"
    fi
}
# Some programs end with a status of their own when they are interrupted.
interrupted=
trap 'interrupted=1' INT
TIMEFORMAT='%R %U %S'
{ took=$({ time run "$@" 1>&3 2>&4; } 2>&1; exit $?); status=$?; } 3>&1 4>&2
read -r wall user sys <<<"$took"
cpu=$(awk -v user="$user" -v sys="$sys" 'BEGIN { print user + sys }')
printf '{"step": "%s", "wall_s": %s, "cpu_s": %s, "status": %s}\n' "$name" "$wall" "$cpu" "$status" >>build/ci/steps.jsonl
[[ -z $interrupted ]] || exit 130
((status == 0 || status >= 128)) || [[ -z ${ANTIPODE_KEEP_GOING:-} ]] || status=0
exit "$status"
