// The release of PyTorch that this is compiled against. Only this folder asks for it.
#pragma once

#include <torch/headeronly/version.h>

#define OXYFUEL_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
