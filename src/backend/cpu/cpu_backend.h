// The backend of the CPU: loop nests in vectors and threads, printed as C++ and compiled in this process.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/target.h"

namespace oxy::backend::cpu {

std::unique_ptr<Backend> make_backend(const Target& target);

}  // namespace oxy::backend::cpu
