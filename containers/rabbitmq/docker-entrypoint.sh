#!/bin/sh
# As in the official image: the broker runs as user rabbitmq.
set -e
if [ "$1" = rabbitmq-server ] && [ "$(id -u)" = 0 ]; then
    find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq '{}' +
    # The script then becomes the Erlang machine, which takes the signals of `docker stop`.
    export RUNNING_UNDER_SYSTEMD=true RABBITMQ_LOGS=-
    exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$@"
fi
exec "$@"
