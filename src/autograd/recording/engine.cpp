#include "autograd/recording/engine.h"

#include <c10/core/AutogradState.h>
#include <fmt/format.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cpy/gil.h"
#include "trace/session/session.h"
#include "trace/session/set_aside.h"
#include "trace/tensors/trace_error.h"

namespace oxy::autograd {

using trace::is_cannot_trace;
using trace::is_internal_trace_error;
using trace::is_python_error;
using trace::PartOfRecording;

using trace::recording_session;
using trace::Session;

using torch::autograd::Edge;
using torch::autograd::Node;

namespace {

// A recording belongs to a thread, and the engine has a thread of its own for each GPU.
class InThisThread {
 public:
  InThisThread() : was_on_(state().get_multithreading_enabled()) {
    state().set_multithreading_enabled(false);
  }
  ~InThisThread() { state().set_multithreading_enabled(was_on_); }
  InThisThread(const InThisThread&) = delete;
  InThisThread& operator=(const InThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  bool was_on_;
};

// PyTorch's engine asks of each size of an argument whether it is 1, since a larger gradient is summed then.
// A gradient mostly has the argument's own symbols as sizes: it fits either way, and the answer for sizes
// other than 1 costs no guard. Where it does not fit, the engine raises.
class GeneralSizes {
 public:
  GeneralSizes() {
    const Session* const session = recording_session();
    if (session == nullptr || !session->symbols) return;
    symbols_ = session->symbols;
    was_ = std::exchange(symbols_->is_general, true);
    symbols_->answered_generally = false;
  }
  ~GeneralSizes() {
    if (symbols_) symbols_->is_general = was_;
  }
  GeneralSizes(const GeneralSizes&) = delete;
  GeneralSizes& operator=(const GeneralSizes&) = delete;

  // Whether the values at hand were left aside, so that an error may be ours.
  bool was_needed() const { return symbols_ && symbols_->answered_generally; }

 private:
  torch_api::SymbolsPointer symbols_;
  bool was_ = false;
};

}  // namespace

BackwardRaises::BackwardRaises(std::string message)
    : Unsupported(fmt::format("its backward pass raises: {}", message.substr(0, message.find('\n')))),
      message_(std::move(message)) {}

std::vector<at::Tensor> run_engine(const torch::autograd::edge_list& roots,
                                   const std::vector<at::Tensor>& tangents,
                                   const torch::autograd::edge_list& leaves, const BackwardOptions& options) {
  std::optional<PartOfRecording> formulas;  // of operators of the program's
  if (const Session* session = recording_session(); session && session->has_opaque_calls) formulas.emplace();
  // torch's engine dereferences the roots without a check.
  if (!std::ranges::all_of(roots, [](const Edge& root) { return root.is_valid(); }))
    throw Unsupported("a backward pass of a view that was made without grad");
  const InThisThread in_this_thread;
  const GeneralSizes general_sizes;
  const cpy::WithoutGil without_gil;
  try {
    return torch::autograd::Engine::get_default_engine().execute(
        roots, tangents, options.keep_graph, options.create_graph, options.accumulate, leaves);
  } catch (const c10::Error& error) {
    if (general_sizes.was_needed())
      throw Unsupported(fmt::format("a backward pass for sizes other than 1: {}", error.msg()));
    throw BackwardRaises(error.what_without_backtrace());
  } catch (python_error& error) {
    const cpy::WithGil gil;
    const std::string text = error.what();
    error.restore();
    PyErr_Clear();
    throw BackwardRaises(text);
  } catch (const std::exception& error) {
    if (is_python_error(error)) throw BackwardRaises(error.what());
    if (!is_cannot_trace(error) || is_internal_trace_error(error)) throw;
    throw Unsupported(fmt::format("in its backward pass, {}", error.what()));
  }
}

bool has_hooks(Node& node) {
  return !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
         !node.retains_grad_hooks().empty() || node.tensor_post_acc_grad_hooks() != nullptr;
}

std::unordered_set<Node*> reached_from(const torch::autograd::edge_list& roots) {
  std::unordered_set<Node*> reached;
  std::vector<Node*> stack;
  for (const Edge& root : roots) stack.push_back(root.function.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !reached.insert(node).second) continue;
    for (const Edge& next : node->next_edges()) stack.push_back(next.function.get());
  }
  return reached;
}

}  // namespace oxy::autograd
