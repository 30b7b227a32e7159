// The one table of operators: schema, traits, shape rule, decomposition and lowering side by side.
//
// An operator is one entry in the table of its family (ops/pointwise/operators.cpp,
// ops/reductions/operators.cpp, ops/views/operators.cpp,
// ...); every stage asks the registry. An operator with no entry still runs: its metadata come from PyTorch's
// meta kernel (counted) and it becomes an extern call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/core/element_rules.h"
#include "ops/core/size_questions.h"
#include "ops/core/traits.h"

namespace oxy::loop {
class LoweringContext;
}

namespace oxy::ops {

// The metadata of an operator call's tensors, arguments in schema order.
class ShapeContext {
 public:
  ShapeContext(const OperatorSchema& schema, const std::vector<graph::Argument>& args,
               const std::function<const TensorMeta&(graph::ValueId)>& meta_of, DType default_dtype,
               bool has_one_thread = false, const SizeQuestions* questions = nullptr)
      : schema_(schema),
        args_(args),
        meta_of_(meta_of),
        default_dtype_(default_dtype),
        has_one_thread_(has_one_thread),
        questions_(questions) {}

  const OperatorSchema& schema() const { return schema_; }
  size_t size() const { return args_.size(); }
  const graph::Argument& arg(size_t i) const { return args_.at(i); }
  bool is_none(size_t i) const { return std::holds_alternative<graph::None>(arg(i)); }
  bool is_tensor(size_t i) const { return std::holds_alternative<graph::ValueRef>(arg(i)); }
  // Unsupported if the argument is no tensor.
  const TensorMeta& tensor(size_t i) const {
    const auto* ref = std::get_if<graph::ValueRef>(&arg(i));
    return ref == nullptr ? no_tensor(i) : meta_of_(ref->id);
  }
  const TensorMeta& meta_of(graph::ValueId id) const { return meta_of_(id); }
  DType default_dtype() const { return default_dtype_; }
  // Of PyTorch's, which chooses between libraries by that.
  bool has_one_thread() const { return has_one_thread_; }

  // Relations of sizes. True if they hold for all calls. False if they hold for none, or if nobody may be
  // asked and ranges do not tell.
  bool equal(const Expr& a, const Expr& b) const;
  bool less(const Expr& a, const Expr& b) const;
  bool less_equal(const Expr& a, const Expr& b) const;
  bool divisible(const Expr& a, const Expr& b) const;
  // SizeQuestions::require; false if nobody may be asked and ranges do not tell.
  bool require(const sym::Condition& condition) const;
  // SizeQuestions::computed_size; Unsupported if nobody may be asked.
  Expr computed_size(const Expr& at_most) const;
  // Null: nobody may be asked, and what is not known is not covered by the rule.
  const SizeQuestions* questions() const { return questions_; }

 private:
  [[noreturn]] const TensorMeta& no_tensor(size_t i) const;

  const OperatorSchema& schema_;
  const std::vector<graph::Argument>& args_;
  const std::function<const TensorMeta&(graph::ValueId)>& meta_of_;
  DType default_dtype_;
  bool has_one_thread_;
  const SizeQuestions* questions_;
};

// One entry a returned tensor. Must agree with eager in dtype, sizes, strides (also of views) and device.
// Throws Unsupported for arguments that the rule does not cover and for ill-formed calls that the meta kernel
// refuses as well; RefusedByEager for those that only the kernel does.
using ShapeRule = std::function<std::vector<TensorMeta>(const ShapeContext&)>;
// Which of the results that the shape rule describes there are. torch leaves the others undefined.
using ResultRule = std::function<std::vector<bool>(const ShapeContext&)>;
// Rewrites the node into simpler nodes appended to `graph`; returns the values that replace its outputs, or
// nothing if it does not apply to these arguments.
using Decomposition =
    std::function<std::vector<graph::ValueId>(graph::Graph& graph, const graph::Node& node)>;
// Adds the node to the loop program.
using Lowering = std::function<void(loop::LoweringContext& context, const graph::Node& node)>;

// What the operator raises on, of what its tensors hold, whoever reads its results: of integers an index out
// of range or a division by zero.
enum class Raises : uint8_t { Never, OnIntegers, OnAnyElements };

// Which integers name positions in the operator's first argument, `self`.
enum class Indices : uint8_t {
  None,
  Lists,      // (self, indices): a list of tensors, one a dimension; negative ones count from the end
  Along,      // (self, dim, index)
  AlongBack,  // likewise; negative ones count from the end
  Flat,       // (self, index): in all of its elements; negative ones count from the end
  Rows,       // (self, indices): in its first dimension
  Classes,    // (self, target, weight, reduction, ignored index): in its dimension of classes
};

// The integers among what the operator returns, in order.
using NumbersRule = std::vector<Expr> (*)(const ShapeContext& context);

struct OperatorEntry {
  std::string_view name;    // "aten::add.Tensor"
  std::string_view schema;  // full text, so that graphs can be parsed and tested without torch
  ShapeRule shape;          // may be empty
  Decomposition decompose;  // may be empty
  Lowering lower;           // may be empty: extern call
  // A functional counterpart for an in-place or out= operator: "aten::add.Tensor" for "aten::add_.Tensor".
  std::string_view functional;
  ResultRule has_result;          // may be empty: all results
  NumbersRule numbers = nullptr;  // null: it returns tensors alone
  // Null: elements of operators that move them are the argument's (Traits::movement), others are not known.
  ElementRule element = nullptr;
  bool is_random = false;  // draws from a generator without naming one in its schema
  Raises raises = Raises::Never;
  Indices indices = Indices::None;
  Traits traits = {};
};

// The operator's entry; for an operator without one, an entry without rules and with the usual traits. A
// load, after the first question about a schema. Thread-safe.
const OperatorEntry& entry_of(const OperatorSchema& op);
inline const Traits& traits_of(const OperatorSchema& op) {
  return entry_of(op).traits;
}
// The entry of that name, or nullptr: for names that come from outside, as those of the dispatcher.
// Thread-safe.
const OperatorEntry* find(std::string_view name);
std::span<const OperatorEntry* const> all();
// Of any operator, those without an entry included.
Raises raises_on_data(const OperatorSchema& op);
// Whether a call may raise because of the elements of its tensors. The graph is functional.
bool raises_on_data(const graph::Graph& graph, const graph::Node& node);
// Whether it may raise because of these, or because a view reaches beyond the memory of its tensor. Then it
// has to run, whoever reads its results.
bool may_raise(const graph::Graph& graph, const graph::Node& node);
// The interned schema of an entry, for decompositions that build nodes.
const OperatorSchema* schema_of(const OperatorEntry& entry);
// Interns the schemas of all entries, so that graph::parse knows them without torch.
void intern_schemas();

}  // namespace oxy::ops
