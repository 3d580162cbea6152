#!/usr/bin/env bash
# Build the C++ services of benchmarks/social_graph against the installed library: build_social_graph.sh [PRESET]
set -euo pipefail
preset=${1:-dev}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/social_graph/$preset
services=benchmarks/social_graph/services
mkdir -p "$build"
exec 9>"$build/.lock" # Two processes of tests may want it at once.
flock 9

[[ -e /usr/include/opentelemetry/version.h ]] || tools/fetch_debian.sh .stores opentelemetry-cpp
[[ -e /usr/include/httplib.h ]] || tools/apt_install.sh libcpp-httplib-dev
find "$services" -name '*.h' -o -name '*.cc' | xargs clang-format-14 --style=file:cpp/.clang-format --dry-run -Werror
(
    cd cpp
    [[ -e build/$preset/CMakeCache.txt ]] || cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
    cmake --build --preset "$preset" -j "$(nproc)" >/dev/null
)
cmake --install "cpp/build/$preset" --prefix "$build/library" >/dev/null
cmake -S "$services" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_BUILD_TYPE="$([[ $preset == dev ]] && echo Debug || echo RelWithDebInfo)" \
    -DSOCIAL_GRAPH_WERROR="$([[ $preset == dev ]] && echo ON || echo OFF)" \
    "-DCMAKE_PREFIX_PATH=$PWD/$build/library;$PWD/.stores/opentelemetry-cpp/usr" >/dev/null
cmake --build "$build" -- --quiet
