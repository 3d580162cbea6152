#!/usr/bin/env bash
# Build the C++ library with its tests and its conformance agent, and run them: build_cpp.sh [PRESET]
set -euo pipefail
preset=${1:-dev}
cd "$(dirname "${BASH_SOURCE[0]}")/../cpp"
# Presets that compile alike share objects, whatever folder they are built in: `shared` compiles nothing after `dev`.
export CCACHE_NOHASHDIR=1

# What is missing: a program, or a file that a package brings.
needs=()
need() { [[ -e $1 ]] || command -v "$1" >/dev/null || needs+=("$2"); }
need cmake cmake
need ninja ninja-build
need c++ g++
need ccache ccache
need clang-format-14 clang-format-14
need /usr/include/nlohmann/json.hpp nlohmann-json3-dev
need /usr/include/gtest/gtest.h libgtest-dev
need pkg-config pkg-config
need /usr/include/openssl/evp.h libssl-dev
need /usr/include/hiredis/hiredis.h libhiredis-dev
need /usr/include/libmongoc-1.0/mongoc/mongoc.h libmongoc-dev
need /usr/include/mariadb/mysql.h libmariadb-dev
need /usr/include/amqp.h librabbitmq-dev
need /usr/include/grpcpp/grpcpp.h libgrpc++-dev
need /usr/include/google/protobuf/message.h libprotobuf-dev
need protoc protobuf-compiler
need grpc_cpp_plugin protobuf-compiler-grpc
case $preset in
    clang | release-clang | tsan | fuzz | tidy)
        need clang++-14 clang-14
        need /usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a libclang-rt-14-dev
        ;;
esac
[[ $preset != tidy ]] || need clang-tidy-14 clang-tidy-14
((${#needs[@]} == 0)) || ../tools/apt_install.sh "${needs[@]}"
# Debian's stable releases have an older one, or none: its headers are unpacked beside the system.
[[ -e /usr/include/opentelemetry/version.h ]] || ../tools/fetch_debian.sh ../.stores opentelemetry-cpp

find agent benchmarks fuzz include src tests -name '*.h' -o -name '*.cc' | xargs clang-format-14 --dry-run -Werror
cmake --preset "$preset" >/dev/null
[[ $preset != tidy ]] || exit 0 # Its sources are read by tidy_cpp.sh.
cmake --build --preset "$preset" -- --quiet
[[ $preset != fuzz ]] || exit 0 # Its targets are run by fuzz_cpp.sh.
ctest --preset "$preset" --output-on-failure >"build/$preset/ctest.log" || { cat "build/$preset/ctest.log"; exit 1; }
passed=$(sed -n 's/.*PASSED  \] \([0-9]*\) tests.*/\1/p' "build/$preset/Testing/Temporary/LastTest.log" | awk '{ sum += $1 } END { print sum }')
echo "C++ ($preset): $passed tests passed"
