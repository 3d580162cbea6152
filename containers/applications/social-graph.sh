#!/bin/bash
# Run one service of the social network in the stack of docker-compose.yml: social-graph NAME REGION
# Environment: BARRIER, where somebody in eu waits for posts: write, read, automatic, or none for nobody.
set -euo pipefail
name=$1 region=${2:-us} barrier=${BARRIER:-write}
export ANTIPODE_REGION=$region

if [[ $name == data ]]; then
    exec python -m benchmarks.social_graph._stack
fi
# Timelines of eu are in a Redis of its own; who follows whom is read from the replica of us.
arguments=(host=0.0.0.0 port=8080 http=8081 "region=$region" "mongodb=mongodb-$region:27017"
    "rabbitmq=amqp://guest:guest@rabbitmq-$region:5672/%2f" "post-storage=social-graph-post-storage-$region:8080"
    "social-graph=social-graph-social-graph-$region:8080")
case $region/$name in
    us/*) arguments+=(redis=redis-us:6379) ;;
    eu/social-graph) arguments+=(redis=redis-eu:6379) ;;
    *) arguments+=(redis=social-graph-redis-eu:6379) ;;
esac
for other in compose-post unique-id text user-mention url-shorten user-timeline media user; do
    arguments+=("$other=social-graph-$other:8080")
done
if [[ $region == eu ]]; then
    case $barrier in
        write | read) arguments+=("barrier=$barrier") ;;
        automatic)
            arguments+=(workers=64 prefetch=1) # A read that waits holds its thread.
            export ANTIPODE_BARRIERS=auto ANTIPODE_AUTO_TIMEOUT=5 ANTIPODE_ON_STALE=raise
            ;;
    esac
fi
case $name in
    media)
        exec python -m benchmarks.social_graph.services.media build=antipode \
            descriptors=cpp/social_graph.descriptors "${arguments[@]}"
        ;;
    user)
        exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -Xmx96m -cp 'java/user/classes:java/user/lib/*' \
            socialgraph.user.UserApplication "${arguments[@]}"
        ;;
    *) exec "cpp/${name//-/_}" "${arguments[@]}" ;;
esac
