#!/bin/bash
# Make the two servers one replica set, the region eu always the secondary; then stay, for a container
# that ended would look like one that failed.
set -eu

ask() {
    mongosh --quiet --host "$1" --eval "db.adminCommand($2)" 2>&1
}

# Members know us by the link's address: so what eu copies is what the link delays.
members='[{"_id": 0, "host": "link:27017", "tags": {"region": "us"}},
          {"_id": 1, "host": "mongodb-eu:27017", "priority": 0, "votes": 0, "tags": {"region": "eu"}}]'
concern='{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}}'
until ask mongodb-eu '{"hello": 1}' | grep -q 'secondary: true' && ask mongodb-us "$concern"; do
    ask mongodb-us "{\"replSetInitiate\": {\"_id\": \"antipode\", \"members\": $members}}" || true
    sleep 1
done
touch /tmp/done
exec sleep infinity
