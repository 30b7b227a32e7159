// What is said of one size: of a dimension of a tensor, or of an int among the arguments.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sym/environment/symbol.h"

namespace oxy::eval {

struct Dimension {
  sym::Mark mark;                // None: nothing is said
  std::optional<int64_t> value;  // of a static one: the number that it has to be
  // The size is factor * (the number of this name) + offset. Empty: the size has no name.
  std::string name;
  int64_t factor = 1;  // at least 1
  int64_t offset = 0;
  sym::Range named_range = {0, sym::kMaxInt};  // of the number of this name
};

// Reads what dynamic_shapes= has for a size. It is told by its attributes, so that torch.export need not be
// imported:
//   None                           static
//   an int                         static, and this number
//   `type.name`, `min`, `max`      torch.export.Dim.AUTO, DYNAMIC or STATIC; if it has a `__name__` as well,
//   sizes
//                                  and ints of this name are equal
//   `__name__`, `min`, `max`       torch.export.Dim(...)
//   the same, `root` and `fn`      a size that follows from another one, linearly
// `place`: of the object, for messages. Throws Interrupted with a TypeError or ValueError. May run `fn`.
Dimension read_dimension(PyObject* object, const std::string& place);

// The int of an exact int; nothing for others (`object` may be null), and for one of more than 64 bits.
std::optional<int64_t> exact_int(PyObject* object);
// "at least 2 and at most 16"; empty for any size.
std::string bounds_text(const sym::Range& range);

}  // namespace oxy::eval
