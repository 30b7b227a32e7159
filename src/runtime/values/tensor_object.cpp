#include "runtime/values/tensor_object.h"

#include <torch/csrc/autograd/python_variable.h>

#include <cstddef>
#include <type_traits>

namespace oxy::runtime {

static_assert(offsetof(TensorObject, tensor) == offsetof(THPVariable, cdata));
static_assert(std::is_same_v<decltype(TensorObject::tensor), decltype(THPVariable::cdata)>);

}  // namespace oxy::runtime
