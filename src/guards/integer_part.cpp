#include "guards/integer_part.h"

#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"

namespace oxy::guards {

namespace {

std::optional<int64_t> element_at(const at::Tensor& tensor, int64_t place) {
  if (!runtime::is_on_host(tensor) || tensor.layout() != at::kStrided || place >= tensor.numel())
    return std::nullopt;
  int64_t offset = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    offset += place % tensor.size(d) * tensor.stride(d);
    place /= tensor.size(d);
  }
  const void* const data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case at::kBool:
      return static_cast<int64_t>(static_cast<const bool*>(data)[offset]);
    case at::kByte:
      return static_cast<const uint8_t*>(data)[offset];
    case at::kChar:
      return static_cast<const int8_t*>(data)[offset];
    case at::kShort:
      return static_cast<const int16_t*>(data)[offset];
    case at::kInt:
      return static_cast<const int32_t*>(data)[offset];
    case at::kLong:
      return static_cast<const int64_t*>(data)[offset];
    default:
      return std::nullopt;
  }
}

}  // namespace

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
  if (part == IntegerPart::Element) return element_at(tensor, dimension);
  const c10::IntArrayRef list = part == IntegerPart::Size ? tensor.sizes() : tensor.strides();
  const auto index = static_cast<size_t>(dimension);
  return index < list.size() ? std::optional(list[index]) : std::nullopt;
}

}  // namespace oxy::guards
