#!/usr/bin/env bash
# Random JDBC programs on a primary and a late replica, compared with what rows say: random_jdbc.sh STEPS [SEED]
# Six pools make so many steps each. What fails names the seed; a seed gives the same steps, but not the same times.
set -euo pipefail
steps=$1 seed=${2:-$RANDOM$RANDOM}
cd "$(dirname "${BASH_SOURCE[0]}")/../java"

mkdir -p target
log=target/random_jdbc.log
echo "random JDBC: $steps steps by each of six pools, seed $seed"
mvn --batch-mode --no-transfer-progress -pl antipode-mysql -am -Dexcluded.tests=disabled -Dtest=RandomJdbcTest \
    -Dsurefire.failIfNoSpecifiedTests=false -Dantipode.random.steps="$steps" -Dantipode.random.seed="$seed" \
    test >"$log" 2>&1 || { grep -vE '^\s+at ' "$log"; exit 1; }
grep -E 'Tests run:.*RandomJdbcTest' "$log"
