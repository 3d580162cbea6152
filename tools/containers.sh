#!/usr/bin/env bash
# Containers: an engine, the stores' images, and the stack of docker-compose.yml.
# Usage: containers.sh engine | images [store...] | applications | up [profile] | down | quick | check | stop
#   engine  start one if none answers and we may; installed by apt if it is missing
#   images  pull the images; where that fails, build what stands in for them, under the same names
#   applications  build the images of train-ticket and social-graph
#   up      start the stack, with an application where its profile is named; returns once every service is healthy
#   down    stop the stack and remove its data
#   quick   the contract suite of Redis in containers, its quick tests
#   check   all of it, with the contract suite in containers and on the stack; says what cannot be done
#   stop    end the engine that `engine` started
# Where no engine can run, `quick` and `check` end with status 77.
# Environment: ANTIPODE_<STORE>_IMAGE, PULL_S (seconds that a pull may take; 0: do not try),
# ANTIPODE_REQUIRE_CONTAINERS (`check` fails where no engine can run), PYTHON (for `check`).
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
base=antipode-standin/base
made=build/containers
pid_file=/var/run/antipode-dockerd.pid
pull_s=${PULL_S:-60}
up_s=300
profiles=(train-ticket social-graph)
in_containers="redis rabbitmq mysql mariadb postgresql mongodb"
on_stack="redis rabbitmq mongodb"
posts_on_stack="redis mysql postgresql mongodb"
engine_package=docker".io" # written apart: it is no host

declare -A image_of=(
    [debian]=${ANTIPODE_DEBIAN_IMAGE:-debian:12.12-slim}
    [mariadb]=${ANTIPODE_MARIADB_IMAGE:-mariadb:10.11}
    [mongodb]=${ANTIPODE_MONGODB_IMAGE:-mongo:6.0}
    [mysql]=${ANTIPODE_MYSQL_IMAGE:-mysql:9.7}
    [postgresql]=${ANTIPODE_POSTGRESQL_IMAGE:-postgres:17}
    [python]=${ANTIPODE_PYTHON_IMAGE:-python:3.13-slim}
    [rabbitmq]=${ANTIPODE_RABBITMQ_IMAGE:-rabbitmq:3.13-management}
    [redis]=${ANTIPODE_REDIS_IMAGE:-redis:7.4}
)

fail() {
    echo "error: $1" >&2
    exit 1
}

compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose "$@"
    elif command -v docker-compose >/dev/null; then
        docker-compose "$@"
    else
        fail "there is no docker compose: install docker-compose or its plug-in"
    fi
}

engine() {
    if docker info >/dev/null 2>&1; then
        echo "a container engine is running"
        return
    fi
    [[ $EUID -eq 0 ]] || fail "no container engine answers, and only root may start one"
    local missing=()
    command -v dockerd >/dev/null || missing+=("$engine_package")
    command -v docker-compose >/dev/null || missing+=(docker-compose)
    command -v iptables >/dev/null || missing+=(iptables)
    if [[ ${#missing[@]} -gt 0 ]]; then
        tools/apt_install.sh "${missing[@]}"
    fi
    mkdir -p "$made"
    setsid dockerd --pidfile "$pid_file" >"$made/dockerd.log" 2>&1 </dev/null &
    local dockerd=$!
    for _ in $(seq 300); do
        if docker info >/dev/null 2>&1; then
            echo "started a container engine; \`tools/containers.sh stop\` ends it"
            return
        fi
        kill -0 "$dockerd" 2>/dev/null || break
        sleep 0.1
    done
    kill "$dockerd" 2>/dev/null || true
    tail -5 "$made/dockerd.log" >&2
    fail "the container engine does not start here: it needs a machine that may mount and route"
}

stop() {
    [[ -e $pid_file ]] || return 0
    local pid
    pid=$(cat "$pid_file")
    kill "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

# A minimal Debian like this machine's, from the mirror and with the settings of its own apt.
# A shell of its own: `check` has a trap at its end, too.
make_base() (
    if docker image inspect "$base" >/dev/null 2>&1; then
        return
    fi
    [[ $EUID -eq 0 ]] || fail "only root may build the base of the stand-ins"
    command -v debootstrap >/dev/null || tools/apt_install.sh debootstrap
    local mirror root
    # Either style of apt's sources; none of these files needs to be there.
    mirror=$(
        cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
            2>/dev/null | grep -oP '^(URIs:|deb(\s+\[[^]]*\])?)\s*\K\S+' | grep -m1 '/debian/\?$'
    ) || true
    [[ -n $mirror ]] || fail "apt's sources name no Debian mirror"
    root=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$root'" EXIT
    debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" \
        >"$made/debootstrap.log" || fail "debootstrap failed, see $made/debootstrap.log"
    local file
    for file in /etc/apt/apt.conf.d/*; do
        if [[ -f $file ]] && ! grep -q 'Invoke' "$file"; then
            cp -n "$file" "$root/etc/apt/apt.conf.d/"
        fi
    done
    chroot "$root" apt-get -qq update
    chroot "$root" apt-get clean
    tar -C "$root" -c . | docker import - "$base" >/dev/null
)

stand_in() {
    local store=$1 context=$made/$1
    rm -rf "$context"
    cp -r "containers/$store" "$context"
    case $store in
        debian)
            mkdir -p "$context"/settings/{etc,usr/local/share/ca-certificates}
            cp /etc/pip.conf "$context/settings/etc/" 2>/dev/null || true
            cp /usr/local/share/ca-certificates/*.crt "$context/settings/usr/local/share/ca-certificates/" 2>/dev/null || true
            ;;
        mongodb)
            tools/fetch_mongodb.sh .stores
            cp .stores/bin/mongod "$context/"
            ;;
        mysql)
            tools/fetch_debian.sh .stores mysqld
            mkdir "$context/bin"
            cp .stores/bin/mysqld "$context/bin/"
            cp -r .stores/mysql "$context/mysql"
            ;;
    esac
    docker build --network host --label antipode.standin=true --tag "${image_of[$store]}" "$context" \
        >"$made/$store.log" 2>&1 || {
        tail -20 "$made/$store.log" >&2
        fail "the stand-in of ${image_of[$store]} cannot be built"
    }
    rm -rf "$context"
}

images() {
    mkdir -p "$made"
    local store image
    for store in "$@"; do
        image=${image_of[$store]:-}
        [[ -n $image ]] || fail "no image for $store; there are: ${!image_of[*]}"
        if docker image inspect "$image" >/dev/null 2>&1; then
            echo "$image is here"
        elif [[ $pull_s != 0 ]] && timeout "$pull_s" docker pull --quiet "$image" >/dev/null 2>&1; then
            echo "$image: pulled"
        else
            pull_s=0 # one registry for all of them: do not wait for it again
            make_base
            stand_in "$store"
            echo "$image: could not be pulled; built a stand-in from containers/$store"
        fi
    done
}

applications() {
    images debian
    local profile
    for profile in "${profiles[@]}"; do
        # As `docker compose build` does, but with the network of this machine.
        docker build --network host --build-arg "DEBIAN=${image_of[debian]}" --target "$profile" \
            --file containers/applications/Dockerfile --tag "antipode/$profile" . >"$made/$profile.log" 2>&1 || {
            tail -20 "$made/$profile.log" >&2
            fail "the image of $profile cannot be built"
        }
        echo "antipode/$profile: built"
    done
}

up() {
    local stack=(compose ${1:+--profile "$1"}) deadline=$((SECONDS + up_s)) waiting
    "${stack[@]}" up --detach --no-build
    while true; do
        waiting=$("${stack[@]}" ps --quiet | xargs docker inspect \
            --format '{{.Name}} {{.State.Status}} {{.State.Health.Status}}' | grep -v ' running healthy$' || true)
        [[ -n $waiting ]] || break
        if ((SECONDS >= deadline)) || grep -q ' exited ' <<<"$waiting"; then
            echo "$waiting" >&2
            fail "the stack is not healthy; \`docker compose logs\` says why"
        fi
        sleep 0.5
    done
    echo "the stack is up: two regions of Redis, MySQL, PostgreSQL, MongoDB and RabbitMQ${1:+, and $1}"
}

engine_or_end() {
    if ! "$0" engine; then
        echo "======== NOTHING WAS TESTED IN CONTAINERS: no engine runs here ========" >&2
        [[ -z ${ANTIPODE_REQUIRE_CONTAINERS:-} ]] || exit 1
        exit 77 # As tools/green.py has it: no failure, and nothing that a later run could rely on.
    fi
    trap '"$0" down >/dev/null 2>&1 || true; "$0" stop' EXIT
    export TESTCONTAINERS_RYUK_DISABLED=true ANTIPODE_REQUIRE_CONTAINERS=1
    pytest=("${PYTHON:-python3}" -m pytest -q -p no:cacheprovider)
}

quick() {
    engine_or_end
    images redis
    ANTIPODE_PROVIDER=containers ANTIPODE_REQUIRE_STORES=redis \
        "${pytest[@]}" --tier=test $(contracts redis)
}

check() {
    engine_or_end
    images python redis rabbitmq mysql mariadb postgresql mongodb
    "${pytest[@]}" tests/integration/containers/test_containers.py
    echo "== the contract suite in containers"
    ANTIPODE_PROVIDER=containers ANTIPODE_REQUIRE_STORES=${in_containers// /,} \
        "${pytest[@]}" $(contracts $in_containers)
    echo "== post-notification on the stack"
    up
    local store profile
    for store in $posts_on_stack; do
        "${PYTHON:-python3}" -m benchmarks.post_notification --stack compose --requests 100 --blocks 1 --kinds new \
            --post-storage "$store" --notifier rabbitmq --out-dir "$made/bench"
    done
    echo "== the contract suite on the stack"
    ANTIPODE_PROVIDER=compose ANTIPODE_REQUIRE_STORES=${on_stack// /,} \
        "${pytest[@]}" $(contracts $on_stack)
    echo "== the applications on the stack"
    applications
    for profile in "${profiles[@]}"; do
        down
        up "$profile"
        "${pytest[@]}" tests/integration/containers/test_applications.py -k "${profile//-/_}"
    done
}

down() {
    compose $(printf -- '--profile %s ' "${profiles[@]}") down --volumes
}

# The files of the contract suite of these stores; MariaDB is tested beside MySQL.
contracts() {
    local store
    for store in "$@"; do
        if [[ -e tests/contract/test_$store.py ]]; then echo "tests/contract/test_$store.py"; fi
    done
}

verb=${1:-}
shift || true
case $verb in
    engine) engine ;;
    images)
        if [[ $# -eq 0 ]]; then set -- python redis rabbitmq mysql mariadb postgresql mongodb; fi
        images "$@"
        ;;
    applications) applications ;;
    up) up "$@" ;;
    down) down ;;
    quick) quick ;;
    check) check ;;
    stop) stop ;;
    *) fail "usage: $0 engine | images [store...] | applications | up [profile] | down | quick | check | stop" ;;
esac
