#!/bin/bash
# Fills $1 (default: dist/gpu) with what build.sh needs on a machine without a package registry. Run it where there is one,
# after ./oxy setup: the headers are those of Debian's packages that it installs.
set -e
parts=${1:-dist/gpu}
mkdir -p "$parts/wheels" "$parts/cmake"
.venv/bin/python -m pip download -q --no-deps --only-binary :all: -d "$parts/wheels" nanobind scikit-build-core pathspec \
  pytest pytest-xdist pytest-timeout execnet iniconfig pluggy packaging pygments
cp /usr/include/xxhash.h "$parts/"
cp -r /usr/include/doctest "$parts/"
cp -r /usr/lib/cmake/doctest "$parts/cmake/"
