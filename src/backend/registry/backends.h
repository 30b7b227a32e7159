// The backends, by the kind of device that a program's tensors are on.
#pragma once

#include <memory>
#include <string>

#include "aten/tensor_meta.h"
#include "backend/backend.h"

namespace oxy::backend {

// Null: there is none, and what is on such devices runs in eager. Backends live for ever.
const Backend* find_backend(Device::Kind kind);

// For kinds of devices that have none. Replaces nothing: InternalError if there is one already.
void register_backend(Device::Kind kind, std::unique_ptr<Backend> backend);

// NVIDIA GPUs get a backend whose kernels Triton compiles: `worker` is the file that `python` runs as a
// compiler, `version` that of its Triton. Kernels are kept in the folder that OXYFUEL_CACHE names.
void use_triton(std::string python, std::string worker, std::string version);

}  // namespace oxy::backend
