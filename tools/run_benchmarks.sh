#!/usr/bin/env bash
# The benchmarks in full size; results go into one folder.
set -euo pipefail
python=$1 out=$2 requests=$3
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
mkdir -p "$out"

echo "== micro"
"$python" -m benchmarks.micro --json "$out/micro.json"

echo "== overhead"
"$python" -m benchmarks.overhead --json "$out/overhead.json"

for post_storage in embedded redis mysql mariadb mongodb; do
    for notifier in embedded rabbitmq; do
        echo "== post-notification: $post_storage and $notifier"
        "$python" -m benchmarks.post_notification --post-storage "$post_storage" \
            --notifier "$notifier" --requests "$requests" --lag-ms 100 \
            --json "$out/post_notification-$post_storage-$notifier.json"
    done
done
