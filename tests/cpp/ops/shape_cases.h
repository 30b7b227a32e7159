// The calls of tests/golden/shapes, with eager's answers.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
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
