// Calls of the fused optimizers' functions, which are given lists of tensors.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "eval/externals/external_containers.h"
#include "eval/python/objects.h"
#include "eval/state/arguments.h"
#include "eval/state/evaluation.h"
#include "eval/torch/number_arguments.h"
#include "eval/treatment/optimizer_forms.h"
#include "eval/treatment/prelude.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/dispatch_key.h"

namespace oxy::eval {

namespace {

bool is_trace(PyObject* object) {
  return trace::is_trace_tensor(object);
}

bool is_dense(const at::Tensor& tensor) {
  const bool has_symbols = tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  return has_symbols ? tensor.is_contiguous() : tensor.is_non_overlapping_and_dense();
}

// Eager's kernels go through the memory of a parameter and of what belongs to it, element by element.
bool lies_like(const at::Tensor& tensor, const at::Tensor& parameter) {
  return tensor.scalar_type() == parameter.scalar_type() && tensor.device() == parameter.device() &&
         tensor.sym_sizes() == parameter.sym_sizes() && tensor.sym_strides() == parameter.sym_strides();
}

// One float32 beside the parameter, which kernels read through a pointer.
bool is_number_beside(const at::Tensor& tensor, const at::Tensor& parameter) {
  return tensor.scalar_type() == at::kFloat && tensor.device() == parameter.device() &&
         tensor.sym_numel() == 1;
}

// One number, which the host reads for a kernel on the host, and may read for another one.
bool is_rate(const at::Tensor& tensor, const at::Tensor& parameter) {
  return (runtime::is_on_host(tensor) && at::isFloatingType(tensor.scalar_type()) &&
          tensor.sym_numel() == 1) ||
         is_number_beside(tensor, parameter);
}

class FusedCall {
 public:
  FusedCall(Interpreter& interpreter, const FusedForm& form, const Arguments& arguments)
      : interpreter_(interpreter), form_(form), arguments_(arguments) {
    if (arguments.positional.size() != form.lists) refuse("unusual arguments");
    for (const Ref& value : arguments.positional) {
      Ref list = PyList_Check(value.get()) || PyTuple_Check(value.get())
                     ? materialize(interpreter, value.get())
                     : Ref();
      if (!list || (!PyList_Check(list.get()) && !PyTuple_Check(list.get()))) refuse("unusual arguments");
      lists_.push_back(std::move(list));
    }
    check_lists();
  }

  Ref call_each() {
    const Ref function = prelude_function(form_.function);
    for (Py_ssize_t i = 0; i < count(); ++i) {
      check_parameter(i);
      Arguments one;
      one.keywords = arguments_.keywords;
      for (size_t list = 0; list < lists_.size(); ++list)
        one.positional.push_back(has_any(list) ? Ref::borrow(item(list, i)) : none());
      if (!accepts(interpreter_, function.get(), one)) refuse("unusual arguments");
      if (!call(interpreter_, function.get(), std::move(one))) return {};
    }
    return none();
  }

 private:
  [[noreturn]] void refuse(const char* reason) {
    interpreter_.stop(fmt::format("calls torch.{} with {}", form_.name, reason));
  }

  Py_ssize_t count() const { return PySequence_Fast_GET_SIZE(lists_[0].get()); }
  bool has_any(size_t list) const { return PySequence_Fast_GET_SIZE(lists_[list].get()) != 0; }
  PyObject* item(size_t list, Py_ssize_t i) const { return PySequence_Fast_GET_ITEM(lists_[list].get(), i); }
  bool is_on(const char* name) const { return keyword(arguments_, name).get() == Py_True; }

  void check_lists() {
    for (size_t list = 0; list < lists_.size(); ++list) {
      const bool is_missing = list == form_.optional_list && !has_any(list);
      if (!is_missing && PySequence_Fast_GET_SIZE(lists_[list].get()) != count())
        refuse("lists of other lengths");
      for (Py_ssize_t i = 0; !is_missing && i < count(); ++i)
        if (!is_trace(item(list, i))) refuse("something else than tensors");
    }
    if (form_.optional_list == kNoList) return;
    const bool is_given = has_any(form_.optional_list);
    if (std::string_view(form_.uses_optional_list) == "momentum") {
      const Ref momentum = keyword(arguments_, "momentum");
      if (!momentum) refuse("unusual arguments");
      const Ref zero = Ref::steal(PyLong_FromLong(0));
      const Ref is_zero = compare(interpreter_, momentum.get(), zero.get(), Py_EQ);
      if (!is_zero || (is_zero == Py_True) == is_given) {
        PyErr_Clear();
        refuse("momentum and no buffers for it");
      }
    } else if (is_on(form_.uses_optional_list) && !is_given) {
      refuse("unusual arguments");
    }
  }

  void check_parameter(Py_ssize_t i) {
    const at::Tensor& parameter = runtime::tensor_of(item(0, i));
    if (!at::isFloatingType(parameter.scalar_type()) || !is_dense(parameter))
      refuse("a parameter of another type, or with gaps in its memory");
    if (!form_.has_kernel(parameter.device())) refuse("parameters on a device that it has no kernel for");
    for (size_t list = 0; list < lists_.size(); ++list) {
      if (!has_any(list)) continue;
      const at::Tensor& tensor = runtime::tensor_of(item(list, i));
      if (at::GradMode::is_enabled() && tensor.requires_grad()) refuse("tensors that require grad");
      const bool fits =
          list == form_.steps_list ? is_number_beside(tensor, parameter) : lies_like(tensor, parameter);
      if (!fits) refuse("tensors that do not lie in memory like their parameters");
    }
    for (const char* name : {"lr", "grad_scale", "found_inf"}) {
      const Ref value = keyword(arguments_, name);
      if (!value || !runtime::is_tensor(value.get())) continue;
      if (!is_trace(value.get())) refuse("a tensor that is no part of the graph");
      const at::Tensor& number = runtime::tensor_of(value.get());
      const bool fits =
          std::string_view(name) == "lr" ? is_rate(number, parameter) : is_number_beside(number, parameter);
      if (!fits) refuse("numbers in tensors of another type or device");
    }
  }

  Interpreter& interpreter_;
  const FusedForm& form_;
  const Arguments& arguments_;
  std::vector<Ref> lists_;
};

}  // namespace

std::optional<Ref> call_fused_optimizer(Interpreter& interpreter, PyObject* callable,
                                        const Arguments& arguments) {
  const FusedForm* const form = fused_form(callable);
  if (form == nullptr) return std::nullopt;
  return FusedCall(interpreter, *form, arguments).call_each();
}

}  // namespace oxy::eval
