#!/bin/sh
# As in the official image: arguments alone are mongod's, which listens on all interfaces unless told
# otherwise and runs as user mongodb.
set -e
case ${1:-} in -*) set -- mongod "$@" ;; esac
if [ "$1" = mongod ]; then
    case " $* " in *" --bind_ip"*) ;; *) set -- "$@" --bind_ip_all ;; esac
    if [ "$(id -u)" = 0 ]; then
        find /data/db \! -user mongodb -exec chown mongodb '{}' +
        exec setpriv --reuid=mongodb --regid=mongodb --clear-groups "$@"
    fi
fi
exec "$@"
