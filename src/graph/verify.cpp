#include <fmt/format.h>

#include "base/error.h"
#include "graph/graph.h"

namespace oxy::graph {
namespace {

template <typename... Types>
bool holds_any(const Argument& arg) {
  return (std::holds_alternative<Types>(arg) || ...);
}

bool is_number(const Argument& arg) {
  return holds_any<bool, Expr, double, std::complex<double>>(arg);
}

bool fits(const Argument& arg, const ArgumentInfo& info) {
  // PyTorch passes tensors that are undefined where a schema asks for a tensor, too.
  if (std::holds_alternative<None>(arg))
    return info.optional || info.kind == ArgumentKind::Generator || info.kind == ArgumentKind::Tensor;
  switch (info.kind) {
    case ArgumentKind::Tensor:
      return holds_any<ValueRef>(arg) || is_number(arg);
    case ArgumentKind::TensorList:
    case ArgumentKind::OptionalTensorList:
      return holds_any<ValueList>(arg);
    case ArgumentKind::Scalar:
      return is_number(arg);
    case ArgumentKind::Int:
      return holds_any<Expr, bool>(arg);
    case ArgumentKind::IntList:
      return holds_any<std::vector<Expr>>(arg);
    case ArgumentKind::Float:
      return holds_any<double, Expr, bool>(arg);
    case ArgumentKind::FloatList:
      return holds_any<std::vector<double>>(arg);
    case ArgumentKind::Bool:
      return holds_any<bool>(arg);
    case ArgumentKind::BoolList:
      return holds_any<std::vector<bool>>(arg);
    case ArgumentKind::String:
      return holds_any<std::string>(arg);
    case ArgumentKind::DType:
      return holds_any<DType>(arg);
    case ArgumentKind::Device:
      return holds_any<Device>(arg);
    case ArgumentKind::MemoryFormat:
      return holds_any<MemoryFormat>(arg);
    case ArgumentKind::Layout:
    case ArgumentKind::Generator:
    case ArgumentKind::Other:
      return true;
  }
  return false;
}

class Verifier {
 public:
  Verifier(const Graph& graph, bool functional) : graph_(graph), functional_(functional) {}

  void run() {
    defined_.assign(graph_.values.size(), false);
    for (ValueId id : graph_.inputs) define(id, kNoNode);
    for (const Constant& constant : graph_.constants) {
      define(constant.value, kNoNode);
      require(constant.handle >= 0, "a constant has no handle");
    }
    for (const NodeId id : graph_.nodes.ids()) {
      where_ = id;
      check_node(graph_.nodes[id]);
    }
    where_ = kNoNode;
    check_results();
  }

 private:
  void require(bool condition, std::string_view rule) const {
    if (!condition) [[unlikely]]
      fail(rule);
  }

  [[noreturn]] void fail(std::string_view rule) const {
    if (where_ == kNoNode) throw InternalError(fmt::format("broken graph: {}", rule));
    const Node& node = graph_.nodes[where_];
    throw InternalError(fmt::format("broken graph: node {} ({}): {}", where_,
                                    node.op == nullptr ? "no operator" : node.op->name, rule));
  }

  void define(ValueId id, NodeId producer) {
    require(graph_.values.contains(id), "a defined value does not exist");
    if (defined_[id]) fail(fmt::format("%{} is defined twice", id));
    defined_[id] = true;
    const Value& value = graph_.values[id];
    if (value.node != producer)
      fail(fmt::format("%{} names node {} as its producer, not {}", id, value.node, producer));
    if (value.meta->sizes.size() != value.meta->strides.size())
      fail(fmt::format("%{} has {} sizes and {} strides", id, value.meta->sizes.size(),
                       value.meta->strides.size()));
  }

  void use(ValueId id) const {
    require(graph_.values.contains(id), "a used value does not exist");
    if (!defined_[id]) fail(fmt::format("%{} is used before it is defined", id));
  }

  void check_node(const Node& node) {
    if (node.op == nullptr) fail("no operator");
    const OperatorSchema& op = *node.op;
    if (node.args.size() != op.arguments.size())
      fail(fmt::format("{} arguments instead of {}", node.args.size(), op.arguments.size()));
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (!fits(node.args[i], op.arguments[i]))
        fail(fmt::format("argument '{}' is of a kind that its schema does not allow", op.arguments[i].name));
      if (op.arguments[i].kind == ArgumentKind::TensorList) {
        if (const auto* list = std::get_if<ValueList>(&node.args[i]))
          for (ValueId id : list->ids)
            if (id == kNoValue) fail(fmt::format("argument '{}' misses a tensor", op.arguments[i].name));
      }
    }
    for (const Argument& arg : node.args)
      if (const auto* ref = std::get_if<ValueRef>(&arg)) use(ref->id);
    for_each_input(node, [this](ValueId id) { use(id); });
    check_output_count(node);
    for (ValueId id : node.outputs)
      if (id != kNoValue) define(id, where_);
    require(node.location == kNoLocation || graph_.locations.contains(node.location),
            "its location does not exist");
    require(!functional_ || !op.is_mutating(), "a functional graph mutates");
  }

  void check_output_count(const Node& node) const {
    size_t tensors = 0;
    for (const ReturnInfo& info : node.op->returns) {
      if (info.kind == ArgumentKind::TensorList || info.kind == ArgumentKind::OptionalTensorList) return;
      if (info.kind == ArgumentKind::Tensor) ++tensors;
    }
    if (node.outputs.size() != tensors)
      fail(fmt::format("{} outputs instead of {}", node.outputs.size(), tensors));
  }

  void check_results() const {
    auto input_count = static_cast<int32_t>(graph_.inputs.size());
    std::vector<bool> mutated(graph_.inputs.size(), false);
    for (const Mutation& mutation : graph_.mutations) {
      require(mutation.input >= 0 && mutation.input < input_count, "a mutated input does not exist");
      require(!mutated[static_cast<size_t>(mutation.input)], "an input is mutated twice");
      mutated[static_cast<size_t>(mutation.input)] = true;
      use(mutation.value);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Output& output = graph_.outputs[i];
      use(output.value);
      if (output.kind == OutputKind::InputAlias)
        require(output.alias >= 0 && output.alias < input_count,
                "an output aliases an input that does not exist");
      if (output.kind == OutputKind::OutputAlias)
        require(output.alias >= 0 && output.alias < static_cast<int32_t>(i),
                "an output aliases an output that is not before it");
    }
  }

  const Graph& graph_;
  bool functional_;
  NodeId where_;  // being checked, for messages
  IdVector<ValueId, bool> defined_;
};

}  // namespace

void verify(const Graph& graph, bool functional) {
  Verifier(graph, functional).run();
}

}  // namespace oxy::graph
