#include "trace/engine.h"

#include <fmt/format.h>
#include <pybind11/gil.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include "trace/trace_exceptions.h"

namespace oxy::trace {

using torch::autograd::Edge;
using torch::autograd::Node;

BackwardRaises::BackwardRaises(std::string message)
    : Unsupported(fmt::format("its backward pass raises: {}", message.substr(0, message.find('\n')))),
      message_(std::move(message)) {}

std::vector<at::Tensor> run_engine(const torch::autograd::edge_list& roots,
                                   const std::vector<at::Tensor>& tangents,
                                   const torch::autograd::edge_list& leaves, const BackwardOptions& options) {
  const pybind11::gil_scoped_release without_gil;
  try {
    return torch::autograd::Engine::get_default_engine().execute(
        roots, tangents, options.keep_graph, options.create_graph, options.accumulate, leaves);
  } catch (const InternalTraceError&) {
    throw;
  } catch (const CannotTrace& error) {
    throw Unsupported(fmt::format("in its backward pass, {}", error.what()));
  } catch (const c10::Error& error) {
    throw BackwardRaises(error.what_without_backtrace());
  } catch (python_error& error) {
    const pybind11::gil_scoped_acquire gil;
    const std::string text = error.what();
    error.restore();
    PyErr_Clear();
    throw BackwardRaises(text);
  }
}

std::unordered_set<Node*> reached_from(const Edge& root) {
  std::unordered_set<Node*> reached;
  std::vector<Node*> stack = {root.function.get()};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !reached.insert(node).second) continue;
    for (const Edge& next : node->next_edges()) stack.push_back(next.function.get());
  }
  return reached;
}

}  // namespace oxy::trace
