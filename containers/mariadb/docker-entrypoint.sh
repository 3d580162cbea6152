#!/bin/bash
# As in the official image: an empty data directory is initialised by the variables MARIADB_* (or
# MYSQL_*) and by *.sql of /docker-entrypoint-initdb.d; the server runs as user mysql on all interfaces.
set -e
case ${1:-} in -*) set -- mariadbd "$@" ;; esac
if [[ $1 != mariadbd && $1 != mysqld ]]; then
    exec "$@"
fi
shift

data=/var/lib/mysql
as_mysql=(setpriv --reuid=mysql --regid=mysql --init-groups)
variable() {
    local name
    for name in "MARIADB_$1" "MYSQL_$1"; do
        if [[ -n ${!name:-} ]]; then echo "${!name}" && return; fi
    done
}

chown mysql:mysql "$data" /run/mysqld
if [[ ! -d $data/mysql ]]; then
    password=$(variable ROOT_PASSWORD)
    if [[ -z $password && -z $(variable ALLOW_EMPTY_ROOT_PASSWORD)$(variable ALLOW_EMPTY_PASSWORD) ]]; then
        echo "error: the database is not initialised and MARIADB_ROOT_PASSWORD is not set" >&2
        exit 1
    fi
    "${as_mysql[@]}" mariadb-install-db --datadir="$data" --skip-test-db \
        --auth-root-authentication-method=normal >/dev/null
    host=$(variable ROOT_HOST)
    first=(
        "SET SESSION sql_log_bin = 0"
        "FLUSH PRIVILEGES"
        "DROP USER IF EXISTS root@'127.0.0.1', root@'::1'"
        "ALTER USER root@localhost IDENTIFIED BY '$password'"
        "CREATE USER root@'${host:-%}' IDENTIFIED BY '$password'"
        "GRANT ALL ON *.* TO root@'${host:-%}' WITH GRANT OPTION"
    )
    database=$(variable DATABASE)
    if [[ -n $database ]]; then first+=("CREATE DATABASE \`$database\`"); fi
    {
        printf '%s;\n' "${first[@]}"
        cat /docker-entrypoint-initdb.d/*.sql 2>/dev/null || true
    } | "${as_mysql[@]}" mariadbd --bootstrap --datadir="$data"
fi
exec "${as_mysql[@]}" mariadbd --datadir="$data" --socket=/run/mysqld/mysqld.sock "$@"
