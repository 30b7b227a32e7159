#!/bin/bash
# test.sh PATHS…: runs tests with what build.sh has built. The tests of tests/python run without the GPU, unless
# `--device cuda` is among the arguments.
export PYTHONPATH=/tmp/oxyfuel-packages:$PWD/build/package OXYFUEL_STRICT=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export OMP_WAIT_POLICY=passive
for part in frame trace runtime; do export "OXYFUEL_${part^^}_TESTING=$PWD/build/${part}_testing"; done
case "$*" in
  *tests/gpu* | *--device*cuda*) exec python3 -m pytest -p no:cacheprovider -q "$@" ;;
  *) CUDA_VISIBLE_DEVICES= exec python3 -m pytest -p no:cacheprovider -q --timeout=250 -n "$(nproc)" --dist worksteal "$@" ;;
esac
