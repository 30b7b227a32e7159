// tensor.register_hook() on a fresh tensor: the hook is interpreted when autograd's engine, which runs on
// trace tensors, comes to it.

#include "cpy/gil.h"
#include "eval/builtins/builtin_families.h"
#include "eval/python/hook_handle.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {
namespace {

class EvaluatedHook {
 public:
  EvaluatedHook(Interpreter& interpreter, Ref hook) : interpreter_(interpreter), hook_(std::move(hook)) {}
  EvaluatedHook(const EvaluatedHook&) = delete;
  EvaluatedHook& operator=(const EvaluatedHook&) = delete;
  ~EvaluatedHook() {
    const PyGILState_STATE state = PyGILState_Ensure();
    hook_.reset();
    PyGILState_Release(state);
  }

  // Gives the new gradient; undefined: the gradient stays as it is.
  at::Tensor operator()(const at::Tensor& gradient) const {
    const cpy::WithGil gil;
    if (!gradient.defined()) trace::throw_cannot_trace("a hook is given no gradient");
    try {
      return run(gradient);
    } catch (const Break& stop) {
      PyErr_Clear();
      trace::throw_cannot_trace(stop.reason);
    }
  }

 private:
  at::Tensor run(const at::Tensor& gradient) const {
    const Ref given = Ref::steal(runtime::wrap_tensor(gradient));
    const Ref result = call_positional(interpreter_, hook_.get(), {given});
    if (!result) {
      PyErr_Clear();
      trace::throw_cannot_trace("a hook of a tensor raises");
    }
    if (result == Py_None) return {};
    if (!trace::is_trace_tensor(result.get()))
      trace::throw_cannot_trace("a hook of a tensor returns something else than a tensor of the graph");
    // In eager the hook is not called if no gradient comes. So its result must depend on the gradient.
    if (!interpreter_.recorder.follows_from(result.get(), given.get()))
      trace::throw_cannot_trace("a hook of a tensor returns what does not depend on the gradient");
    return runtime::tensor_of(result.get());
  }

  Interpreter& interpreter_;
  Ref hook_;
};

Ref register_hook(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "register_hook", 2, 2);
  if (interpreter.torch_calls.get()) interpreter.stop("registers a hook, which a backend's program cannot");
  PyObject* object = arg(a, 0);
  if (!trace::is_trace_tensor(object) || interpreter.externals.is_external(object))
    interpreter.stop("registers a hook on a tensor that existed before");
  const at::Tensor& tensor = runtime::tensor_of(object);
  if (!tensor.requires_grad()) interpreter.stop("registers a hook on a tensor that does not require grad");
  auto hook = std::make_shared<EvaluatedHook>(interpreter, a.positional[1]);
  tensor.register_hook([hook](const at::Tensor& gradient) { return (*hook)(gradient); });
  interpreter.calls.hooked.push_back(a.positional[0]);
  return new_hook_handle();
}

constexpr BuiltinEntry kTable[] = {{"torch", "Tensor.register_hook", &register_hook}};

}  // namespace

std::span<const BuiltinEntry> hook_builtins() {
  return kTable;
}

}  // namespace oxy::eval
