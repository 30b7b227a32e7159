#include "aten/dtype.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace oxy {
namespace {

enum class Category : uint8_t { Bool, Integral, Floating, Complex };

struct DTypeInfo {
  std::string_view name;
  uint8_t bytes;
  Category category;
  bool is_signed;
};

constexpr std::array<DTypeInfo, 15> kInfo = {{
    {"bool", 1, Category::Bool, false},
    {"uint8", 1, Category::Integral, false},
    {"int8", 1, Category::Integral, true},
    {"int16", 2, Category::Integral, true},
    {"int32", 4, Category::Integral, true},
    {"int64", 8, Category::Integral, true},
    {"uint16", 2, Category::Integral, false},
    {"uint32", 4, Category::Integral, false},
    {"uint64", 8, Category::Integral, false},
    {"float16", 2, Category::Floating, true},
    {"bfloat16", 2, Category::Floating, true},
    {"float32", 4, Category::Floating, true},
    {"float64", 8, Category::Floating, true},
    {"complex64", 8, Category::Complex, true},
    {"complex128", 16, Category::Complex, true},
}};

const DTypeInfo& info(DType dtype) {
  return kInfo[static_cast<size_t>(dtype)];
}

// uint16, uint32, uint64: PyTorch promotes them to real floating types only.
bool is_wide_unsigned(DType dtype) {
  return dtype == DType::UInt16 || dtype == DType::UInt32 || dtype == DType::UInt64;
}

DType promote_integral(DType a, DType b) {
  if (is_signed(a) && is_signed(b)) return item_size(a) > item_size(b) ? a : b;
  DType other = a == DType::UInt8 ? b : a;
  return other == DType::Int8 ? DType::Int16 : other;
  throw Unsupported(fmt::format("promotion of {} and {} is not defined", name(a), name(b)));
}

}  // namespace

size_t item_size(DType dtype) {
  return info(dtype).bytes;
}
std::string_view name(DType dtype) {
  return info(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return info(dtype).category == Category::Floating;
}
bool is_complex(DType dtype) {
  return info(dtype).category == Category::Complex;
}
bool is_integral(DType dtype) {
  return info(dtype).category == Category::Integral;
}
bool is_signed(DType dtype) {
  return info(dtype).is_signed;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (info(a).category > info(b).category) std::swap(a, b);
  if (is_wide_unsigned(a) ? !is_floating(b) : is_wide_unsigned(b) && !is_floating(a))
    throw Unsupported(fmt::format("promotion of {} and {} is not defined", name(a), name(b)));
  switch (info(b).category) {
    case Category::Bool:
      return b;
    case Category::Integral:
      return info(a).category == Category::Bool ? b : promote_integral(a, b);
    case Category::Floating:
      if (info(a).category != Category::Floating) return b;
      if (item_size(a) == item_size(b)) return DType::Float32;  // float16 and bfloat16
      return item_size(a) > item_size(b) ? a : b;
    case Category::Complex:
      return a == DType::Float64 || a == DType::Complex128 ? DType::Complex128 : b;
  }
  throw InternalError("unknown dtype category");
}

}  // namespace oxy
