// The symbols of a capture at a call: where their values are read, and the relations that have to hold.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guards/integer_part.h"
#include "guards/source.h"
#include "runtime/values/tensor_object.h"
#include "sym/environment/guard_program.h"

namespace oxy::guards {

// Where the value of a symbol is read.
struct SymbolSource {
  SourceId source;  // none: the graph computes it
  IntegerPart part = IntegerPart::Value;
  int32_t dimension = -1;  // of a size or stride; the place of an element
};

// A symbol, for explain().
struct DescribedSymbol {
  std::string name;             // "s0"
  std::string source;           // what it stands for: "x.size(0)"
  std::optional<int64_t> hint;  // its value at the capture; none: the graph computes it
  std::string range;            // "2 <= s0 <= 512"; empty: any size
};

// Not thread-safe; the GIL guards it.
class SymbolGuards {
 public:
  SymbolGuards() = default;
  // `sources[i]`: of the symbol with the id i of the environment, for all of them.
  SymbolGuards(std::vector<SymbolSource> sources, const sym::ShapeEnvironment& environment);

  bool empty() const { return sources_.empty(); }
  // How many relations there are.
  size_t size() const { return program_.texts().size(); }
  // Reads all symbols, and says whether the relations hold. `value_at` gives the object at a source, borrowed
  // or null.
  template <class ValueAt>
  bool check(const ValueAt& value_at) {
    // Most symbols are sizes, one behind another of the same tensor.
    SourceId tensor_source;
    c10::IntArrayRef sizes;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const SymbolSource& from = sources_[i];
      if (!from.source.is_valid()) continue;
      if (from.part == IntegerPart::Size) {
        if (from.source != tensor_source) {
          PyObject* const object = value_at(from.source);
          if (object == nullptr || !runtime::is_tensor(object)) return false;
          tensor_source = from.source;
          sizes = runtime::tensor_of(object).sizes();
        }
        if (static_cast<size_t>(from.dimension) >= sizes.size()) return false;
        values_[i] = sizes[static_cast<size_t>(from.dimension)];
        continue;
      }
      const std::optional<int64_t> value = read_integer(from.part, from.dimension, value_at(from.source));
      if (!value) return false;
      values_[i] = *value;
    }
    return holds();
  }
  // By the ids of the symbols; those of the last check(). 0 for those that the graph computes.
  std::span<const int64_t> values() const { return values_; }
  // The same, with nothing for those.
  std::vector<std::optional<int64_t>> known_values() const;
  // Why the last check() failed: a relation with what was and what is.
  std::string explain() const;
  // A line for each relation.
  std::span<const std::string> texts() const { return program_.texts(); }
  // Those that are not known to be a number or another symbol.
  std::span<const DescribedSymbol> symbols() const { return described_; }

 private:
  bool holds();

  std::vector<SymbolSource> sources_;
  std::vector<DescribedSymbol> described_;
  std::vector<int64_t> values_;
  sym::GuardProgram program_;
  std::vector<int64_t> inputs_;  // of the program
  std::vector<int64_t> work_;    // memory of its runs
  sym::RunOutcome outcome_;
};

}  // namespace oxy::guards
