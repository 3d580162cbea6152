#!/bin/bash
# As in the official image: an empty data directory is initialised by the variables MYSQL_* and by
# *.sql of /docker-entrypoint-initdb.d; the server runs as user mysql.
set -e
case ${1:-} in -*) set -- mysqld "$@" ;; esac
if [[ $1 != mysqld ]]; then
    exec "$@"
fi
shift

data=/var/lib/mysql
server=(setpriv --reuid=mysql --regid=mysql --init-groups mysqld --no-defaults
    --datadir="$data" --socket=/var/run/mysqld/mysqld.sock --secure-file-priv=NULL)
chown mysql:mysql "$data" /var/run/mysqld
if [[ ! -d $data/mysql ]]; then
    if [[ -z ${MYSQL_ROOT_PASSWORD:-}${MYSQL_ALLOW_EMPTY_PASSWORD:-} ]]; then
        echo "error: the database is not initialised and MYSQL_ROOT_PASSWORD is not set" >&2
        exit 1
    fi
    first=/var/run/mysqld/first.sql
    {
        printf '%s;\n' "SET SESSION sql_log_bin = 0" \
            "ALTER USER root@localhost IDENTIFIED BY '${MYSQL_ROOT_PASSWORD:-}'" \
            "CREATE USER root@'${MYSQL_ROOT_HOST:-%}' IDENTIFIED BY '${MYSQL_ROOT_PASSWORD:-}'" \
            "GRANT ALL ON *.* TO root@'${MYSQL_ROOT_HOST:-%}' WITH GRANT OPTION" \
            "GRANT PROXY ON ''@'' TO root@'${MYSQL_ROOT_HOST:-%}' WITH GRANT OPTION"
        if [[ -n ${MYSQL_DATABASE:-} ]]; then echo "CREATE DATABASE \`$MYSQL_DATABASE\`;"; fi
        cat /docker-entrypoint-initdb.d/*.sql 2>/dev/null || true
    } >"$first"
    "${server[@]}" --initialize-insecure
    # There is no client in here: the server itself runs them, before it listens.
    set -- "$@" --init-file="$first"
fi
exec "${server[@]}" "$@"
