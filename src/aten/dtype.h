// Element types and PyTorch's rules for promoting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace oxy {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
};

size_t item_size(DType dtype);       // bytes an element
std::string_view name(DType dtype);  // torch's name without the module: "float32"
std::optional<DType> dtype_from_name(std::string_view name);
bool is_floating(DType dtype);  // real floating types
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // Bool not included
bool is_signed(DType dtype);
// The type of an operation over operands of equal priority (torch.promote_types).
DType promote(DType a, DType b);

}  // namespace oxy
