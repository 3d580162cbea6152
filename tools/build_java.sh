#!/usr/bin/env bash
# Build the Java library with its conformance agent, and run the tests: build_java.sh [ci]
# "ci" does what is left after that: tests that are slow or need servers of `antipode lab`, Javadoc, and what a release
# takes. Where the first was not green over the files as they are now, it runs first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../java"

needs=()
need() { command -v "$1" >/dev/null || needs+=("$2"); }
need javac openjdk-17-jdk-headless
need mvn maven
((${#needs[@]} == 0)) || ../tools/apt_install.sh "${needs[@]}"

mkdir -p target
tested=target/tested # The digest of the files that the last green run without "ci" found.

# The digest of the files of Git's tree that match, as they are now, committed or not.
digest() {
    git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c 1-32
}

# Ask no repository for what the same POMs and arguments had before: the mark lies with what was fetched.
mark_of() {
    printf '%s\n' "$(digest pom.xml '*/pom.xml')" "$(mvn --version)" "$@" | sha256sum |
        sed -E "s|^(.{32}).*|${HOME:?}/.m2/repository/.antipode/\1|"
}

# verify NAME ARGUMENTS...: counts the tests.
verify() {
    local name=$1 log=target/build$1.log mark
    shift
    mark=$(mark_of "$@")
    mvn --batch-mode --no-transfer-progress $([[ ! -e $mark ]] || echo --offline) "$@" verify >"$log" 2>&1 ||
        { cat "$log"; exit 1; }
    mkdir -p "${mark%/*}" && : >"$mark"
    grep -E '^\[(WARNING|ERROR)\]' "$log" || true
    tests=$(awk '/Tests run:/ && !/Time elapsed/ { gsub(",", ""); sum += $4 } END { print sum + 0 }' "$log")
    ((tests > 0)) || { echo "error: no Java test was run" >&2; exit 1; }
    echo "Java${name:+ (${name#-})}: $tests tests passed"
}

now=$(digest . ../tests/conformance ../docs)
if [[ ${1:-} != ci || $(cat "$tested" 2>/dev/null) != "$now" ]]; then
    rm -f "$tested"
    verify "" --threads 2
    echo "$now" >"$tested"
fi
[[ ${1:-} == ci ]] || exit 0

# The formatting was checked with the rest. One module at a time: its tests share the machine with their servers.
verify -ci -Pci,release '-Dchosen.tests=(lab | slow)' -Dspotless.check.skip=true
for module in $(sed -n 's:.*<module>\(.*\)</module>.*:\1:p' pom.xml | grep -vx 'antipode-\(agent\|benchmarks\|bom\|programs\)'); do
    for kind in "" -sources -javadoc; do
        compgen -G "$module/target/$module-[0-9]*[!sc]$kind.jar" >/dev/null ||
            { echo "error: $module has no ${kind#-} jar for a release" >&2; exit 1; }
    done
done
