// The calls of tests/golden/shapes, with eager's answers.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string_view>

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

}  // namespace oxy::testing
