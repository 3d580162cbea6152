#!/usr/bin/env bash
# Hold psycopg 3 over a libpq without pipelines (11) to its tests, on x86-64: test_old_libpq.sh PYTHON
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A wheel of psycopg2 brings that libpq. psycopg's implementation in Python loads what is found first.
"$1" -m pip download -q --no-deps --only-binary=:all: --python-version 39 --platform manylinux1_x86_64 \
    -d "$folder" psycopg2-binary==2.8.6
"$1" -m zipfile -e "$folder"/psycopg2_binary-*.whl "$folder"
ln -s "$folder"/psycopg2_binary.libs/libpq-*.so.* "$folder/libpq.so.5"
export LD_LIBRARY_PATH="$folder:$folder/psycopg2_binary.libs" PSYCOPG_IMPL=python
"$1" -c 'import psycopg; assert not psycopg.capabilities.has_pipeline(), psycopg.pq.version()'
tests=tests/integration/postgresql
PATH="$PATH:/usr/sbin" ANTIPODE_REQUIRE_STORES=postgresql "$1" -m pytest -q -k "psycopg and not psycopg2 and not pipe" \
    $tests/test_psycopg.py $tests/test_commits_inside.py $tests/test_as_plain.py $tests/test_temporary.py \
    $tests/test_transactions_that_read.py $tests/test_unsent.py
"$1" -m tests.programs --only sessions --clients psycopg,psycopg-async --steps 300
