// NVIDIA GPUs: kernels in Triton's language.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace oxy::backend::cuda {

std::unique_ptr<Backend> make_backend();

}  // namespace oxy::backend::cuda
