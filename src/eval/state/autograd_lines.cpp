#include "eval/state/autograd_lines.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

namespace oxy::eval {

void AutogradLines::note(const std::string& line) {
  const uint64_t nodes = at::sequence_number::peek();
  if (made_.empty() || made_.back().nodes < nodes) made_.push_back({nodes, &line});
}

std::string AutogradLines::current() {
  if (const auto node = torch::autograd::get_current_node()) {
    const auto maker = std::ranges::upper_bound(made_, node->sequence_nr(), {}, &Made::nodes);
    last_ = maker == made_.end() ? "" : "gradient of " + *maker->line;
  } else if (torch::autograd::get_current_graph_task_id() < 0) {
    last_.clear();
  }
  return last_;
}

}  // namespace oxy::eval
