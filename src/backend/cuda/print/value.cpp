#include "backend/cuda/print/value.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backend/nests/element_text.h"
#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

struct TypeNames {
  DType dtype;
  std::string_view triton, pointer, torch;
};

constexpr TypeNames kTypes[] = {
    {DType::Bool, "tl.int1", "*i1", "torch.bool"},
    {DType::UInt8, "tl.uint8", "*u8", "torch.uint8"},
    {DType::Int8, "tl.int8", "*i8", "torch.int8"},
    {DType::Int16, "tl.int16", "*i16", "torch.int16"},
    {DType::Int32, "tl.int32", "*i32", "torch.int32"},
    {DType::Int64, "tl.int64", "*i64", "torch.int64"},
    {DType::UInt16, "tl.uint16", "*u16", "torch.uint16"},
    {DType::UInt32, "tl.uint32", "*u32", "torch.uint32"},
    {DType::UInt64, "tl.uint64", "*u64", "torch.uint64"},
    {DType::Float16, "tl.float16", "*fp16", "torch.float16"},
    {DType::BFloat16, "tl.bfloat16", "*bf16", "torch.bfloat16"},
    {DType::Float32, "tl.float32", "*fp32", "torch.float32"},
    {DType::Float64, "tl.float64", "*fp64", "torch.float64"},
};

const TypeNames& names(DType dtype) {
  for (const TypeNames& row : kTypes)
    if (row.dtype == dtype) return row;
  throw Unsupported(fmt::format("elements of type {} in a kernel for a GPU", name(dtype)));
}

std::string floating_text(double v) {
  if (std::isnan(v)) return "float(\"nan\")";
  if (std::isinf(v)) return v < 0 ? "float(\"-inf\")" : "float(\"inf\")";
  std::string digits = fmt::format("{}", v);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

std::string_view triton_type(DType dtype) {
  return names(dtype).triton;
}
std::string_view pointer_type(DType dtype) {
  return names(dtype).pointer;
}
std::string_view torch_type(DType dtype) {
  return names(dtype).torch;
}

std::string literal(const loop::Scalar& value, DType dtype) {
  const DType held = held_dtype(dtype);
  const auto typed = [&](const std::string& text) {
    return fmt::format("tl.full([], {}, {})", text, triton_type(held));
  };
  if (held == DType::Bool)
    return typed(std::visit([](auto v) { return v != 0; }, value.value) ? "True" : "False");
  if (is_floating(held)) {
    const double v = std::visit([](auto x) { return static_cast<double>(x); }, value.value);
    if (held == DType::Float64) return typed(floating_text(v));
    const auto narrow = static_cast<float>(v);
    if (std::isinf(narrow) || std::isnan(narrow)) return floating_text(narrow);
    const std::string text = fmt::format("{}", narrow);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  const std::string text = fmt::format("{}", integer_of(value));
  return held == DType::Int32 ? text : typed(text);
}

}  // namespace oxy::backend::cuda
