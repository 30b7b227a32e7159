// What PyTorch's fused optimizers do with one parameter: Python functions of ours, which are part of the
// prelude. Kernels are generated for their operators, and numbers in them may vary.
#pragma once

#include <Python.h>
#include <c10/core/Device.h>

#include <cstddef>

namespace oxy::eval {

inline constexpr size_t kNoList = static_cast<size_t>(-1);

struct FusedForm {
  const char* name;      // in torch
  const char* function;  // of the prelude; takes one tensor of each list, and the keywords of the call
  size_t lists;          // how many lists of tensors it is given, the parameters first
  size_t optional_list;  // the list that is empty unless the next one asks for it
  const char* uses_optional_list;  // a keyword
  size_t steps_list;               // the list of numbers of steps

  // Whether PyTorch has a kernel for parameters on the device.
  bool has_kernel(c10::Device device) const;
};

// The form of a function of torch; null if it is no such function.
const FusedForm* fused_form(PyObject* callable);

// The Python text of the forms. They use those of numbers (number_forms.h).
extern const char* const kOptimizerForms;

}  // namespace oxy::eval
