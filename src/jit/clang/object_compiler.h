// One kernel source to one relocatable object, by clang inside this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace oxy::jit {

// The object file's bytes (ELF), position independent. No file is read: the source must not include anything.
// InternalError with clang's diagnostics if the source does not compile. Thread-safe.
std::string compile_object(std::string_view source, const codegen::Target& target);

// "19.1.7"
std::string clang_version();

}  // namespace oxy::jit
