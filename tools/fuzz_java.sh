#!/usr/bin/env bash
# Change texts at random, and race threads at scopes, in Java: fuzz_java.sh SECONDS [SEED], for each test.
set -euo pipefail
seconds=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../java"
mkdir -p target
log=target/fuzz.log
mvn --batch-mode --no-transfer-progress -pl antipode-core test -DargLine= -Dtest='DecoderFuzzTest,ScopeRacesTest' \
    -Dantipode.fuzz.seconds="$seconds" ${2:+-Dantipode.fuzz.seed="$2"} >"$log" 2>&1 || { tail -60 "$log"; exit 1; }
tried=$(sed -n 's/.*texts tried: //p' "$log")
echo "Java (fuzz): $tried; scopes raced for $seconds s a test"
