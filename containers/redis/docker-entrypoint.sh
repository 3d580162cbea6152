#!/bin/sh
# As in the official image: arguments alone are redis-server's, and it runs as user redis.
set -e
case ${1:-} in -*) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ]; then
    # The official image is built with this default; Debian's server is not.
    case " $* " in *" --protected-mode "*) ;; *) set -- "$@" --protected-mode no ;; esac
    if [ "$(id -u)" = 0 ]; then
        find . \! -user redis -exec chown redis '{}' +
        exec setpriv --reuid=redis --regid=redis --clear-groups "$@"
    fi
fi
exec "$@"
