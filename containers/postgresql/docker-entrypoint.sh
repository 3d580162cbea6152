#!/bin/bash
# As in the official image: an empty data directory is initialised by the variables POSTGRES_* and by
# *.sh of /docker-entrypoint-initdb.d; the server runs as user postgres on all interfaces.
set -e
case ${1:-} in -*) set -- postgres "$@" ;; esac
if [[ $1 != postgres ]]; then
    exec "$@"
fi
if [[ $EUID -eq 0 ]]; then
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    find "$PGDATA" \! -user postgres -exec chown postgres '{}' +
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [[ ! -s $PGDATA/PG_VERSION ]]; then
    export POSTGRES_USER=${POSTGRES_USER:-postgres}
    method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
    if [[ -z ${POSTGRES_PASSWORD:-} && $method != trust ]]; then
        echo "error: the database is not initialised and POSTGRES_PASSWORD is not set" >&2
        exit 1
    fi
    # shellcheck disable=SC2086 # several arguments
    initdb --username="$POSTGRES_USER" --pwfile=<(echo "${POSTGRES_PASSWORD:-none}") \
        ${POSTGRES_INITDB_ARGS:-} >/dev/null
    echo "host all all all $method" >>"$PGDATA/pg_hba.conf"
    if compgen -G "/docker-entrypoint-initdb.d/*.sh" >/dev/null; then
        # Nobody but the scripts gets in yet.
        pg_ctl --wait -o "${*:2} -c listen_addresses=" start >/dev/null
        for script in /docker-entrypoint-initdb.d/*.sh; do bash "$script"; done
        pg_ctl --wait --mode=fast stop >/dev/null
    fi
fi
case " $* " in *"listen_addresses"* | *config_file*) ;; *) set -- "$@" -c "listen_addresses=*" ;; esac
exec "$@"
