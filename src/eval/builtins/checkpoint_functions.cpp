// torch.utils.checkpoint.checkpoint: the function is inlined like any other code. The recorded nodes carry
// the number of the call (graph::Location), so that the backward pass computes them again instead of keeping
// them.
//
// Eager runs the function a second time in the backward pass. So a function with effects is left to eager.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "eval/builtins/builtin_families.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/recorded_as.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

bool is_true(Interpreter& interpreter, const Ref& value, const char* name) {
  if (value != Py_True && value != Py_False)
    interpreter.stop(fmt::format("calls checkpoint() with an unusual {}", name),
                     "pass use_reentrant to torch.utils.checkpoint.checkpoint, True or False");
  return value == Py_True;
}

// The keyword arguments of checkpoint() itself, which are taken out of those of the function.
struct Settings {
  Ref use_reentrant, preserve_rng_state, context_fn, determinism_check, debug, early_stop;

  explicit Settings(Arguments& a) {
    const std::pair<const char*, Ref*> names[] = {{"use_reentrant", &use_reentrant},
                                                  {"preserve_rng_state", &preserve_rng_state},
                                                  {"context_fn", &context_fn},
                                                  {"determinism_check", &determinism_check},
                                                  {"debug", &debug},
                                                  {"early_stop", &early_stop}};
    std::erase_if(a.keywords, [&](auto& keyword) {
      const auto* found = std::ranges::find_if(names, [&](const auto& name) {
        return PyUnicode_CompareWithASCIIString(keyword.first.get(), name.first) == 0;
      });
      if (found == std::end(names)) return false;
      *found->second = std::move(keyword.second);
      return true;
    });
  }
};

bool requires_grad(PyObject* object) {
  return runtime::is_tensor(object) && runtime::tensor_of(object).requires_grad();
}

// The reentrant form is a torch.autograd.Function. Gradients flow only through its arguments, and into every
// result.
void check_reentrant_arguments(Interpreter& interpreter, const Arguments& a) {
  if (!a.keywords.empty())
    interpreter.stop("calls checkpoint() with use_reentrant=True and keyword arguments");
  bool any = false;
  for (const Ref& value : a.positional) {
    any = any || requires_grad(value.get());
    if (PyTuple_Check(value.get()) || PyList_Check(value.get()) || PyDict_Check(value.get()))
      interpreter.stop("calls checkpoint() with use_reentrant=True and a container",
                       "pass use_reentrant=False to torch.utils.checkpoint.checkpoint");
  }
  if (!any) interpreter.stop("calls checkpoint() with use_reentrant=True, and no argument requires grad");
}

void check_reentrant_results(Interpreter& interpreter, PyObject* result) {
  if (!at::GradMode::is_enabled()) return;
  const auto check_one = [&](PyObject* item) {
    if (runtime::is_tensor(item) &&
        torch::autograd::isDifferentiableType(runtime::tensor_of(item).scalar_type()) && !requires_grad(item))
      interpreter.stop(
          "calls checkpoint() with use_reentrant=True on a function with a result that needs no gradient");
  };
  check_one(result);
  if (!PyTuple_Check(result)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) check_one(PyTuple_GET_ITEM(result, i));
}

Ref checkpoint(Interpreter& interpreter, Arguments& a) {
  if (a.positional.empty()) interpreter.stop("calls checkpoint() without a function");
  if (interpreter.torch_calls.get()) interpreter.stop("calls checkpoint(), which a backend's program cannot");
  const Settings settings(a);
  const bool is_reentrant = is_true(interpreter, settings.use_reentrant, "use_reentrant");
  if (settings.preserve_rng_state && !is_true(interpreter, settings.preserve_rng_state, "preserve_rng_state"))
    interpreter.stop("calls checkpoint() that draws other random numbers in the backward pass");
  if (settings.debug && is_true(interpreter, settings.debug, "debug"))
    interpreter.stop("calls checkpoint() with debug=True");
  if (settings.context_fn && settings.context_fn != well_known("torch.utils.checkpoint", "noop_context_fn"))
    interpreter.stop("calls checkpoint() with a context_fn");
  const Ref function = std::move(a.positional.front());
  a.positional.erase(a.positional.begin());
  if (is_reentrant) check_reentrant_arguments(interpreter, a);
  const graph::NodeId first_node = interpreter.recorder.next_node();
  Ref result;
  {
    const RecordedAs scope(interpreter, interpreter.calls.new_checkpoint(), "a function under checkpoint()");
    result = call(interpreter, function.get(), std::move(a));
  }
  if (!result) {
    PyErr_Clear();
    interpreter.stop("a function under checkpoint() raises");
  }
  if (interpreter.recorder.writes_to_older(first_node))
    interpreter.stop("a function under checkpoint() writes to a tensor that it has not made");
  if (is_reentrant) check_reentrant_results(interpreter, result.get());
  return result;
}

// torch.is_grad_enabled(). In the reentrant form grad mode is off in the forward pass, and on when the
// function runs again, so that there is no single answer.
Ref is_grad_enabled(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "is_grad_enabled", 0, 0);
  if (interpreter.calls.in_checkpoint())
    interpreter.stop("a function under checkpoint() asks whether gradients are recorded");
  return boolean(at::GradMode::is_enabled());
}

constexpr BuiltinEntry kTable[] = {
    {"torch.utils.checkpoint", "checkpoint", &checkpoint},
    {"torch._C", "is_grad_enabled", &is_grad_enabled},
};

}  // namespace

std::span<const BuiltinEntry> checkpoint_builtins() {
  return kTable;
}

}  // namespace oxy::eval
