#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "ops/core/registry.h"
#include "passes/weights/channels_last.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

ConvolutionLayout where_constant(const ConvolutionSite& site) {
  return site.has_constant_weight ? ConvolutionLayout::ChannelsLast : ConvolutionLayout::AsItComes;
}

Graph converted(std::string_view text, const ChooseLayout& choose = where_constant) {
  ops::intern_schemas();
  Graph out = use_channels_last(graph::parse(text), choose);
  CHECK_NOTHROW(graph::verify(out, true));
  return out;
}

int64_t count(const Graph& g, std::string_view name) {
  return std::count_if(g.nodes.begin(), g.nodes.end(),
                       [&](const Node& node) { return node.op->name == name; });
}

}  // namespace

TEST_CASE("passes: channels-last changes layout only at the borders") {
  Graph out = converted(
      "graph(%0 : float32[1, 4, 8, 8]) {\n"
      "  %1 : float32[4, 4, 3, 3] = constant 0\n"
      "  %2 : float32[1, 4, 8, 8] = aten::convolution(%0, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  %3 : float32[1, 4, 8, 8] = aten::relu(%2)\n"
      "  %4 : float32[1, 4, 8, 8] = aten::convolution(%3, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  %5 : float32[1, 4, 8, 8] = aten::add.Tensor(%4, %3)\n"
      "  return %5\n"
      "}\n");
  CHECK(count(out, "aten::clone") == 2);
  REQUIRE(out.nodes.size() == 6);
  for (const Node& node : out.nodes) {
    if (&node == &out.nodes.back()) break;
    CAPTURE(node.op->name);
    CHECK(is_channels_last(out.meta(node.outputs.front())));
  }
  CHECK(is_contiguous(out.meta(out.outputs.front().value)));
}

TEST_CASE("passes: an operator that needs the recorded layout gets it") {
  Graph out = converted(
      "graph(%0 : float32[1, 4, 8, 8]) {\n"
      "  %1 : float32[4, 4, 3, 3] = constant 0\n"
      "  %2 : float32[1, 4, 8, 8] = aten::convolution(%0, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  %3 : float32[1, 256] = aten::view(%2, [1, 256])\n"
      "  return %3\n"
      "}\n");
  const Node& view = out.nodes.back();
  CHECK(view.op->name == "aten::view");
  CHECK(is_contiguous(out.meta(tensor_argument(view, 0))));
}

TEST_CASE("passes: a convolution that wants the recorded layout gets it between others") {
  Graph out = converted(
      "graph(%0 : float32[1, 4, 8, 8], %1 : float32[4, 4, 3, 3], %2 : float32[4, 4, 1, 1]) {\n"
      "  %3 : float32[1, 4, 8, 8] = aten::convolution(%0, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  %4 : float32[1, 4, 8, 8] = aten::relu(%3)\n"
      "  %5 : float32[1, 4, 8, 8] = aten::convolution(%4, %2, None, [1, 1], [0, 0], [1, 1], False, [0, 0], "
      "1)\n"
      "  %6 : float32[1, 4, 8, 8] = aten::convolution(%5, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  return %6\n"
      "}\n",
      [](const ConvolutionSite& site) {
        return site.padding[0] == 1 ? ConvolutionLayout::ChannelsLast : ConvolutionLayout::AsRecorded;
      });
  std::vector<bool> channels_last;
  for (const Node& node : out.nodes)
    if (node.op->name == "aten::convolution")
      channels_last.push_back(is_channels_last(out.meta(node.outputs.front())));
  CHECK(channels_last == std::vector<bool>{true, false, true});
  CHECK(is_contiguous(out.meta(out.outputs.front().value)));
}

TEST_CASE("passes: a wish for channels-last is granted where few copies are needed for it") {
  const auto wish = [](const ConvolutionSite&) { return ConvolutionLayout::PrefersChannelsLast; };
  std::string chain = "graph(%0 : float32[1, 4, 8, 8], %1 : float32[4, 4, 3, 3]) {\n";
  for (int n : {1, 8}) {
    std::string text = chain;
    for (int k = 0; k < n; ++k)
      text += fmt::format(
          "  %{} : float32[1, 4, 8, 8] = aten::convolution(%{}, %1, None, [1, 1], [1, 1], [1, 1], False, [0, "
          "0], 1)\n",
          k + 2, k == 0 ? 0 : k + 1);
    text += fmt::format("  return %{}\n}}\n", n + 1);
    CAPTURE(n);
    CHECK(count(converted(text, wish), "aten::clone") == (n == 1 ? 0 : 2));
  }
}

TEST_CASE("passes: a wish for channels-last with the weight gives convolutions their weights so") {
  const auto wish = [](const ConvolutionSite&) { return ConvolutionLayout::PrefersChannelsLastWithWeight; };
  const Graph out = converted(
      "graph(%0 : float32[1, 4, 8, 8]{strides=[256, 1, 32, 4]}, %1 : float32[4, 4, 3, 3]) {\n"
      "  %2 : float32[1, 4, 8, 8]{strides=[256, 1, 32, 4]} = aten::convolution(%0, %1, None, [1, 1], [1, 1], "
      "[1, "
      "1], False, [0, 0], 1)\n"
      "  %3 : float32[1, 4, 8, 8]{strides=[256, 1, 32, 4]} = aten::relu(%2)\n"
      "  return %3\n"
      "}\n",
      wish);
  CHECK(count(out, "aten::clone") == 1);
  for (const Node& node : out.nodes)
    if (node.op->name == "aten::convolution") CHECK(is_channels_last(out.meta(tensor_argument(node, 1))));
}

TEST_CASE("passes: convolutions that take what comes keep the layout of a graph") {
  std::string_view text =
      "graph(%0 : float32[1, 4, 8, 8], %1 : float32[4, 4, 3, 3]) {\n"
      "  %2 : float32[1, 4, 8, 8] = aten::convolution(%0, %1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
      "1)\n"
      "  return %2\n"
      "}\n";
  CHECK(graph::print(converted(text)) == text);
}
