#include "ops/core/element_bounds.h"

#include "aten/dtype.h"
#include "ops/core/registry.h"

namespace oxy::ops {

namespace {

constexpr int kMostSteps = 64;  // of a way from a value to what it is computed of

class Search {
 public:
  Search(const graph::Graph& graph, std::unordered_set<graph::ValueId>* read) : graph_(graph), read_(read) {}

  std::optional<Bounds> of(graph::ValueId value) {
    const graph::NodeId producer = graph_.values[value].node;
    if (producer == graph::kNoNode || ++steps_ > kMostSteps) return std::nullopt;
    if (read_ != nullptr) read_->insert(value);
    const graph::Node& node = graph_.nodes[producer];
    const OperatorEntry& entry = entry_of(*node.op);
    const auto argument = [&](size_t place) -> std::optional<Bounds> {
      if (place >= node.args.size()) return std::nullopt;
      const auto* ref = std::get_if<graph::ValueRef>(&node.args[place]);
      return ref != nullptr ? of(ref->id) : bounds_of_number(node.args[place]);
    };
    if (entry.bounds != nullptr) {
      const std::optional<Bounds> bounds = entry.bounds(argument);
      return bounds && holds(graph_.meta(value).dtype, *bounds) ? bounds : std::nullopt;
    }
    return moves_elements(entry.traits.movement) && keeps_dtype(node, value) ? argument(0) : std::nullopt;
  }

 private:
  // Whether results have elements of the first argument and no others.
  static bool moves_elements(Movement movement) {
    return movement == Movement::Keep || movement == Movement::Reshape || movement == Movement::Permute ||
           movement == Movement::Expand || movement == Movement::Split || movement == Movement::Unbind;
  }

  // Whether numbers between the bounds stay there when they become elements of the type.
  static bool holds(DType dtype, const Bounds& bounds) {
    if (dtype == DType::Bool) return bounds.low >= 0 && bounds.high <= 1;
    if (is_complex(dtype)) return false;
    return is_floating(dtype) || dtype == DType::Int64 || (bounds.low >= 0 && bounds.high <= 127);
  }

  bool keeps_dtype(const graph::Node& node, graph::ValueId value) const {
    const auto* ref = node.args.empty() ? nullptr : std::get_if<graph::ValueRef>(&node.args[0]);
    return ref != nullptr && graph_.meta(ref->id).dtype == graph_.meta(value).dtype;
  }

  const graph::Graph& graph_;
  std::unordered_set<graph::ValueId>* read_;
  int steps_ = 0;
};

}  // namespace

std::optional<Bounds> element_bounds(const graph::Graph& graph, graph::ValueId value,
                                     std::unordered_set<graph::ValueId>* read) {
  return Search(graph, read).of(value);
}

}  // namespace oxy::ops
