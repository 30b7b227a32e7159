// Runs a program and waits for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oxy::backend::cpu {

struct ProcessResult {
  int status = 0;      // exit status; 128 + n if signal n ended it; 127 if it could not be started
  std::string output;  // standard output and standard error, in the order written
};

// Standard input is empty. Nothing is thrown for a program that fails. Thread-safe.
ProcessResult run_process(const std::vector<std::string>& command);

// The full path of a program: itself if it contains a slash, else the first on PATH; none if not executable.
std::optional<std::string> find_program(std::string_view name);

}  // namespace oxy::backend::cpu
