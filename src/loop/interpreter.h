// Runs loop programs element by element: slow, simple, and what tests compare lowerings and fused programs
// with.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "loop/program.h"

namespace oxy::loop {

// Elements in row-major order of the logical index: floating types in `floats`, rounded to their precision,
// Bool and integer types in `ints`.
struct Array {
  DType dtype = DType::Float32;
  std::vector<int64_t> sizes;
  std::vector<double> floats;
  std::vector<int64_t> ints;

  double number(size_t i) const { return is_floating(dtype) ? floats[i] : static_cast<double>(ints[i]); }
};

struct InterpreterOptions {
  // The value of a size symbol; InternalError if the program has one that it does not know.
  std::function<std::optional<int64_t>(int64_t variable_id)> symbol = [](int64_t) { return std::nullopt; };
  // Runs an extern call: one array a returned tensor. Tensor arguments arrive in schema order, lists
  // flattened.
  std::function<std::vector<Array>(const ExternCall&, const std::vector<Array>&)> call;
};

struct InterpreterResult {
  std::vector<Array> outputs;
  std::vector<Array> mutations;  // what the program's mutations write, in order
};

// `inputs` and `constants` by Buffer::source. UserError if a checked index is out of range ("index out of
// range").
InterpreterResult interpret(const Program& program, const std::vector<Array>& inputs,
                            const std::vector<Array>& constants = {}, const InterpreterOptions& options = {});

}  // namespace oxy::loop
