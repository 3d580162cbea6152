#!/usr/bin/env bash
# Build the Java library with its conformance agent, and run the tests: build_java.sh [ci]
# With "ci" Javadoc is checked too, tests run with servers of `antipode lab`, and what a release takes is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../java"

needs=()
need() { command -v "$1" >/dev/null || needs+=("$2"); }
need javac openjdk-17-jdk-headless
need mvn maven
((${#needs[@]} == 0)) || ../tools/apt_install.sh "${needs[@]}"

mkdir -p target
log=target/build.log
mvn --batch-mode --no-transfer-progress ${1:+"-P$1,release"} verify >"$log" 2>&1 || { cat "$log"; exit 1; }
grep -E '^\[(WARNING|ERROR)\]' "$log" || true
tests=$(awk '/Tests run:/ && !/Time elapsed/ { gsub(",", ""); sum += $4 } END { print sum + 0 }' "$log")
((tests > 0)) || { echo "error: no Java test was run" >&2; exit 1; }
if [[ -n ${1:-} ]]; then
    for module in $(sed -n 's:.*<module>\(.*\)</module>.*:\1:p' pom.xml | grep -vx 'antipode-\(agent\|benchmarks\|bom\)'); do
        for kind in "" -sources -javadoc; do
            compgen -G "$module/target/$module-[0-9]*[!sc]$kind.jar" >/dev/null ||
                { echo "error: $module has no ${kind#-} jar for a release" >&2; exit 1; }
        done
    done
fi
echo "Java${1:+ ($1)}: $tests tests passed"
