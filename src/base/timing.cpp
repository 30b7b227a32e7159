#include "base/timing.h"

#include <chrono>
#include <mutex>
#include <vector>

#include "base/log.h"

namespace oxy {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct TreeNode {
  std::string_view stage;
  int32_t parent = -1;
  int32_t depth = 0;
  int64_t nanoseconds = 0;
  int64_t count = 0;
};

// The spans of this thread since its outermost one began. Siblings of one name share a node.
struct ThreadTree {
  std::vector<TreeNode> nodes;
  int32_t open = -1;
};

thread_local ThreadTree tree;

struct Totals {
  std::mutex mutex;
  std::map<std::string, StageTime> stages;
};

Totals& totals() {
  static Totals* once = new Totals;  // never destroyed: threads may finish spans while the process ends
  return *once;
}

int32_t enter(std::string_view stage) {
  for (size_t i = static_cast<size_t>(tree.open) + 1; i < tree.nodes.size(); ++i)
    if (tree.nodes[i].parent == tree.open && tree.nodes[i].stage == stage) return static_cast<int32_t>(i);
  int32_t depth = tree.open < 0 ? 0 : tree.nodes[static_cast<size_t>(tree.open)].depth + 1;
  tree.nodes.push_back({stage, tree.open, depth});
  return static_cast<int32_t>(tree.nodes.size() - 1);
}

bool inside_itself(const TreeNode& node) {
  for (int32_t parent = node.parent; parent >= 0; parent = tree.nodes[static_cast<size_t>(parent)].parent)
    if (tree.nodes[static_cast<size_t>(parent)].stage == node.stage) return true;
  return false;
}

void print_below(int32_t parent, std::string& text) {
  for (size_t i = static_cast<size_t>(parent) + 1; i < tree.nodes.size(); ++i) {
    const TreeNode& node = tree.nodes[i];
    if (node.parent != parent) continue;
    text += fmt::format("{:{}}{:<{}} {:9.3f} ms", "", 2 * node.depth, node.stage,
                        30 - 2 * std::min(node.depth, 10), static_cast<double>(node.nanoseconds) * 1e-6);
    text += node.count > 1 ? fmt::format("  {} times\n", node.count) : "\n";
    print_below(static_cast<int32_t>(i), text);
  }
}

void finish_tree() {
  {
    Totals& all = totals();
    std::lock_guard lock(all.mutex);
    for (const TreeNode& node : tree.nodes) {
      StageTime& stage = all.stages[std::string(node.stage)];
      stage.count += node.count;
      if (!inside_itself(node)) stage.seconds += static_cast<double>(node.nanoseconds) * 1e-9;
    }
  }
  if (log_enabled(Channel::Timing)) {
    std::string text;
    print_below(-1, text);
    log(Channel::Timing, "{}", text);
  }
  tree.nodes.clear();
}

}  // namespace

Span::Span(std::string_view stage) {
  tree.open = enter(stage);
  start_ = now();
}

Span::~Span() {
  TreeNode& node = tree.nodes[static_cast<size_t>(tree.open)];
  node.nanoseconds += now() - start_;
  node.count += 1;
  tree.open = node.parent;
  if (tree.open < 0) finish_tree();
}

double Span::seconds() const {
  return static_cast<double>(now() - start_) * 1e-9;
}

std::map<std::string, StageTime> stage_times() {
  std::lock_guard lock(totals().mutex);
  return totals().stages;
}

void reset_stage_times() {
  std::lock_guard lock(totals().mutex);
  totals().stages.clear();
}

}  // namespace oxy
