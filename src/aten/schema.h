// Operator identity: name, arguments, and which of them are written to or aliased by the results.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace oxy {

namespace ops {
struct OperatorEntry;
}

enum class ArgumentKind : uint8_t {
  Tensor,
  TensorList,
  OptionalTensorList,
  Scalar,
  Int,
  IntList,
  Float,
  FloatList,
  Bool,
  BoolList,
  String,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Other,
};

struct ArgumentInfo {
  std::string name;
  ArgumentKind kind = ArgumentKind::Other;
  bool optional = false;
  bool kwarg_only = false;
  bool is_written = false;   // `Tensor(a!)`
  int alias_set = -1;        // letter of `Tensor(a)`, -1 if the schema names none
  std::string default_text;  // as in the schema; empty if there is no default
};

struct ReturnInfo {
  ArgumentKind kind = ArgumentKind::Other;
  int alias_set = -1;
  bool is_written = false;
};

// Where the table of operators keeps what it has found for a schema (ops::entry_of), so that the next
// question is one load. A copy of a schema begins without. Thread-safe.
class EntryLink {
 public:
  EntryLink() = default;
  EntryLink(const EntryLink& /*other*/) noexcept {}
  EntryLink& operator=(const EntryLink& /*other*/) noexcept {
    entry_.store(nullptr, std::memory_order_release);
    return *this;
  }

  const ops::OperatorEntry* get() const { return entry_.load(std::memory_order_acquire); }
  void set(const ops::OperatorEntry* entry) const { entry_.store(entry, std::memory_order_release); }

 private:
  mutable std::atomic<const ops::OperatorEntry*> entry_ = nullptr;
};

struct OperatorSchema {
  std::string name;  // with overload: "aten::add.Tensor", "aten::relu"
  std::vector<ArgumentInfo> arguments;
  std::vector<ReturnInfo> returns;
  bool is_random = false;  // draws from a generator (torch's nondeterministic_seeded tag)
  // The place of the probability of a dropout: where it is 0, a random operator draws nothing. -1: none.
  int dropout = -1;
  EntryLink entry = {};  // of ops alone

  bool is_mutating() const;  // writes to an argument
  bool is_view() const;      // returns an alias of an argument and writes to none
};

// Whether a call draws from a generator. `args`: the call's, of a graph or of a plan, in schema order.
template <class Arguments>
bool draws_numbers(const OperatorSchema& op, const Arguments& args) {
  if (!op.is_random || op.dropout < 0) return op.is_random;
  const auto* probability = std::get_if<double>(&args.at(static_cast<size_t>(op.dropout)));
  return probability == nullptr || *probability != 0;
}

// Interns the operator described by `text`, in torch's syntax:
// "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". The pointer lives for ever.
// UserError if the text is malformed. Thread-safe.
const OperatorSchema* intern_schema(std::string_view text, bool is_random = false);
// The operator interned under this full name, or nullptr.
const OperatorSchema* find_schema(std::string_view name);

}  // namespace oxy
