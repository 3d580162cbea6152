#!/usr/bin/env bash
# Random JDBC programs on a primary and a late replica, compared with what rows say: random_jdbc.sh STEPS [SEED [POOL]]
# Six pools make so many steps each, or those whose options have the text POOL. What fails names the seed; a seed gives the same steps, but not the same times.
set -euo pipefail
steps=$1 seed=${2:-$RANDOM$RANDOM} pool=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../java"

# A run without servers has shown nothing.
export ANTIPODE_REQUIRE_STORES=mysql,mariadb
# By its stack the program knows an error of the driver's own: the compiler may leave that out.
mkdir -p target
log=target/random_jdbc.log
echo "random JDBC: $steps steps by each of six pools${pool:+ with $pool}, seed $seed"
mvn --batch-mode --no-transfer-progress -pl antipode-mysql -am -Dexcluded.tests=disabled -Dtest=RandomJdbcTest \
    -Dsurefire.failIfNoSpecifiedTests=false -Dantipode.random.steps="$steps" -Dantipode.random.seed="$seed" -Dantipode.random.pool="$pool" \
    -DargLine=-XX:-OmitStackTraceInFastThrow \
    test >"$log" 2>&1 || { grep -vE '^\s+at ' "$log"; exit 1; }
grep -E 'Tests run:.*RandomJdbcTest' "$log"
