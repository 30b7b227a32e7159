// LLVM IR to a relocatable object, with a pass pipeline for code that is already vectorised.
#pragma once

#include <string>

#include "backend/cpu/target.h"

namespace llvm {
class Module;
}

namespace oxy::backend::cpu {

// The object file's bytes (ELF), position independent. The module is optimised in place. Thread-safe for
// modules of different contexts.
std::string generate_object(llvm::Module& module, const backend::cpu::Target& target);

// Frees the memory that is kept from one module to the next (megabytes). Thread-safe.
void drop_code_generators();

}  // namespace oxy::backend::cpu
