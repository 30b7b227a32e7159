#include "guards/integer_part.h"

#include "runtime/values/tensor_object.h"

namespace oxy::guards {

std::optional<int64_t> read_integer(IntegerPart part, int32_t dimension, PyObject* object) {
  if (object == nullptr) return std::nullopt;
  if (part == IntegerPart::Value) {
    if (!PyLong_CheckExact(object)) return std::nullopt;
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0 ? std::optional(value) : std::nullopt;
  }
  if (!runtime::is_tensor(object)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(object);
  if (part == IntegerPart::Offset) return tensor.storage_offset();
  const c10::IntArrayRef list = part == IntegerPart::Size ? tensor.sizes() : tensor.strides();
  const auto index = static_cast<size_t>(dimension);
  return index < list.size() ? std::optional(list[index]) : std::nullopt;
}

}  // namespace oxy::guards
