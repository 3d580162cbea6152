#!/usr/bin/env bash
# Install the real servers of the stores named, or say what to install. No service is started: each
# test starts servers of its own and stops them.
set -euo pipefail

cd "$(dirname "$0")/.."
declare -A server_of=([redis]=redis-server [rabbitmq]=rabbitmq-server [mongodb]=mongod
    [mysql]=mysqld [mariadb]=mariadbd [activemq]=activemq.jar [seaweedfs]=weed)
# What the system has no package of; it goes into .stores, which git ignores and the tests look into.
declare -A fetch_by=([mongod]="tools/fetch_mongodb.sh .stores"
    [mysqld]="tools/fetch_debian.sh .stores mysqld"
    [activemq.jar]="tools/fetch_activemq.sh .stores"
    [weed]="tools/fetch_seaweedfs.sh .stores"
    [mysqlrouter]="tools/fetch_debian.sh .stores mysqlrouter"
    [pgbouncer]="tools/fetch_debian.sh .stores pgbouncer")
# The proxies that the tests of a store put before it.
declare -A proxies_of=([redis]="haproxy nutcracker" [mongodb]=haproxy [mysql]="haproxy mysqlrouter"
    [mariadb]=haproxy [postgresql]="haproxy pgbouncer")
# The package of a server that is called otherwise, and what the client mysqlclient compiles against.
declare -A package_of=([mariadbd]=mariadb-server)
headers=(libmariadb-dev pkg-config)

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin:$PWD/.stores/bin"

# Whether a server is here. MariaDB's package brings a `mysqld` too, which is not MySQL's.
have() {
    local found
    for found in $(type -ap "$1"); do
        if [[ $1 != mysqld ]] || ! "$found" --version 2>/dev/null | grep -q MariaDB; then
            return 0
        fi
    done
    return 1
}

missing=() packages=()

want() {
    if have "$1" || [[ " ${missing[*]} " == *" $1 "* ]]; then
        return
    elif [[ -n ${fetch_by[$1]:-} ]]; then
        ${fetch_by[$1]}
    else
        missing+=("$1")
        packages+=("${package_of[$1]:-$1}")
    fi
}

for store in "$@"; do
    server=${server_of[$store]:-}
    if [[ $store == embedded || $store =~ ^(dynamodb|postgresql|s3|sns)$ ]]; then
        server=  # Packages of Python bring it.
    elif [[ -z $server ]]; then
        echo "error: no such store: $store; there are: embedded dynamodb postgresql s3 sns ${!server_of[*]}" >&2
        exit 1
    elif have "$server"; then
        echo "$store: $server is here"
    fi
    for program in $server ${proxies_of[$store]:-}; do
        want "$program"
    done
done
if [[ " $* " == *" mysql "* ]] && ! pkg-config --exists libmariadb 2>/dev/null; then
    packages+=("${headers[@]}")
fi

if [[ ${#packages[@]} -gt 0 ]] && ! tools/apt_install.sh "${packages[@]}"; then
    echo "  or run what needs no server:  make test STORES=embedded" >&2
    exit 1
fi
for name in "${missing[@]}"; do
    if ! have "$name"; then
        echo "error: $name was installed, but it is not on PATH" >&2
        exit 1
    fi
done
