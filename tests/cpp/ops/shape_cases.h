// The calls of tests/golden/shapes, with eager's answers.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/core/registry.h"

namespace oxy::testing {

// `family`: the name of a file there.
inline graph::Graph shape_cases(std::string_view family) {
  ops::intern_schemas();
  std::ifstream file(fmt::format("{}/tests/golden/shapes/{}.graph", OXYFUEL_SOURCE_DIR, family));
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return graph::parse(text.str());
}

// Which results of a call the rule says there are. Some kernels of eager's give more: those that an
// `output_mask` leaves out.
inline std::vector<bool> existing_results(const graph::Node& node, const ops::ShapeContext& context) {
  const ops::OperatorEntry& entry = *ops::find(node.op->name);
  if (!entry.has_result) return std::vector<bool>(node.outputs.size(), true);
  std::vector<bool> exists = entry.has_result(context);
  REQUIRE(exists.size() == node.outputs.size());
  for (size_t i = 0; i < exists.size(); ++i)
    CHECK_MESSAGE((!exists[i] || node.outputs[i] != graph::kNoValue), node.op->name, ", result ", i);
  return exists;
}

// What the rule says of these results, in order.
inline std::vector<TensorMeta> results_by_rule(const graph::Node& node, const ops::ShapeContext& context) {
  const std::vector<TensorMeta> metas = ops::find(node.op->name)->shape(context);
  if (!ops::find(node.op->name)->has_result) return metas;
  const std::vector<bool> exists = existing_results(node, context);
  std::vector<TensorMeta> results;
  for (size_t i = 0; i < metas.size(); ++i)
    if (exists[i]) results.push_back(metas[i]);
  return results;
}

// Eager's answer, as far as the rule says that there are results.
inline std::vector<TensorMeta> results_of_eager(const graph::Graph& g, const graph::Node& node) {
  const std::function<const TensorMeta&(graph::ValueId)> meta_of =
      [&](graph::ValueId id) -> const TensorMeta& { return g.meta(id); };
  const std::vector<bool> exists =
      existing_results(node, ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32));
  std::vector<TensorMeta> metas;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (exists[i]) metas.push_back(g.meta(node.outputs[i]));
  return metas;
}

// Sizes, strides and offsets, also strides that the text of a TensorMeta leaves out.
inline std::string describe(const std::vector<TensorMeta>& metas) {
  std::string text;
  for (const TensorMeta& m : metas) {
    std::string strides;
    for (const Expr& s : m.strides) strides += s.str() + ",";
    text += fmt::format("{} <{}> +{}; ", str(m), strides, m.storage_offset.str());
  }
  return text;
}

}  // namespace oxy::testing
