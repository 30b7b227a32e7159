#!/bin/bash
# Builds the tree on a machine with a GPU and no package registry, against the PyTorch that it has, without LLVM.
# In $1 (default: dist/gpu) lie what it lacks: pure Python wheels in wheels/ (nanobind, scikit-build-core, pathspec,
# pytest and its plugins), xxhash.h, and doctest/ and cmake/doctest/ from Debian's doctest-dev. docs/gpu.md tells more.
set -e
parts=${1:-dist/gpu}
packages=/tmp/oxyfuel-packages
[ -d $packages ] || python3 -m pip install -q --no-deps --no-index --target $packages "$parts"/wheels/*.whl
cp "$parts/xxhash.h" /usr/include/
cp -r "$parts/doctest" /usr/include/
mkdir -p /usr/lib/cmake
cp -r "$parts/cmake/doctest" /usr/lib/cmake/
export PYTHONPATH=$packages
begin=$(date +%s)
cmake -S . -B build -G Ninja -DPython_EXECUTABLE="$(which python3)" -DOXYFUEL_WITH_LLVM=OFF -DOXYFUEL_WARNINGS_ARE_ERRORS= > /tmp/cmake.log
ninja -C build > /tmp/build.log || { grep -E "error|FAILED" /tmp/build.log | head -40; exit 1; }
echo "built in $(($(date +%s) - begin)) s"
