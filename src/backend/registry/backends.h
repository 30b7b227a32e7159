// The backends, by the kind of device that a program's tensors are on.
#pragma once

#include <memory>

#include "aten/tensor_meta.h"
#include "backend/backend.h"

namespace oxy::backend {

// Null: there is none, and what is on such devices runs in eager. Backends live for ever.
const Backend* find_backend(Device::Kind kind);

// For kinds of devices that have none. Replaces nothing: InternalError if there is one already.
void register_backend(Device::Kind kind, std::unique_ptr<Backend> backend);

}  // namespace oxy::backend
