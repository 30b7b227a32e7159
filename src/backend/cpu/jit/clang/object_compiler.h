// One kernel source to one relocatable object, by clang inside this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/target.h"

namespace oxy::backend::cpu {

// The object file's bytes (ELF), position independent. No file is read: the source must not include anything.
// InternalError with clang's diagnostics if the source does not compile. Thread-safe.
std::string compile_object(std::string_view source, const backend::cpu::Target& target);

// "19.1.7"
std::string clang_version();

}  // namespace oxy::backend::cpu
