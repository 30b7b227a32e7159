#include "backend/cpu/print/standalone.h"

#include <algorithm>

#include "backend/cpu/print/prelude.h"
#include "backend/cpu/print/writer.h"
#include "backend/nests/loop_nest.h"
#include "base/error.h"

namespace oxy::backend::cpu {

namespace {

// Numbers that take no slow path: floats within [-1, 1], integers that are valid indices and divisors.
constexpr std::string_view kHelpers = R"(
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace alone {
template <class T> T real(int64_t i) { return (T)(i * 37 % 1009 - 504) / (T)504; }
uint16_t float16(int64_t i) { return (uint16_t)((i & 1) << 15 | 0x3800 | i * 37 % 1024); }
uint16_t bfloat16(int64_t i) { return (uint16_t)((i & 1) << 15 | 0x3f00 | i * 37 % 128); }
template <class T> T integer(int64_t i) { return (T)(1 + i % 3); }
uint8_t truth(int64_t i) { return (uint8_t)(i & 1); }

template <class T> void* filled(int64_t count, T (*element)(int64_t)) {
  T* memory = (T*)aligned_alloc(64, (count * sizeof(T) + 127) / 64 * 64);
  if (!memory) { perror("aligned_alloc"); exit(1); }
  for (int64_t i = 0; i < count; ++i) memory[i] = element(i);
  return memory;
}
double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
}  // namespace alone

)";

std::string element_function(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "truth";
    case DType::Float16:
      return "float16";
    case DType::BFloat16:
      return "bfloat16";
    default:
      return fmt::format("{}<{}>", is_floating(dtype) ? "real" : "integer", memory_type(dtype));
  }
}

// Elements from the first to the last that the strides reach.
int64_t span(const plan::Buffer& buffer) {
  int64_t last = 0;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    const int64_t size = estimate(buffer.sizes[d]);
    if (size == 0) return 0;
    last += (size - 1) * estimate(buffer.strides[d]);
  }
  return last + 1;
}

const plan::Launch& first_launch(const plan::Plan& plan, plan::KernelId kernel) {
  for (const plan::Step& step : plan.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step); launch && launch->kernel == kernel)
      return *launch;
  throw InternalError("a kernel that no step of its plan launches");
}

}  // namespace

std::string standalone(const plan::Plan& plan, plan::KernelId kernel) {
  const plan::Kernel& code = plan.kernels.at(kernel);
  const plan::Launch& launch = first_launch(plan, kernel);
  const auto& slices = std::get<plan::Slices>(launch.shape);
  Writer out;
  out.open("int main()");
  out.line("void* const buffers[] = {{");
  for (const plan::BufferId id : launch.buffers) {
    const plan::Buffer& buffer = plan.buffers.at(id);
    std::string sizes;
    for (const Expr& size : buffer.sizes) sizes += (sizes.empty() ? "" : ", ") + size.str();
    out.line("    alone::filled({}, alone::{}),  // %{}: {}[{}]", span(buffer),
             element_function(buffer.dtype), buffer.name, name(buffer.dtype), sizes);
  }
  out.line("    nullptr}};");
  std::string sizes;
  for (const Expr& size : launch.sizes) sizes += fmt::format("{}, ", estimate(size));
  out.line("const int64_t sizes[] = {{{}0}};", sizes);
  out.line("void* const scratch = alone::filled({}, alone::truth);", estimate(slices.scratch_bytes));
  out.line("const int64_t extent = {};", estimate(slices.extent));
  out.line("const int status = {}(buffers, sizes, scratch, 0, extent);", code.name);
  out.line("int64_t calls = 0;");
  out.line("const double begin = alone::seconds();");
  out.line("double passed = 0;");
  out.line(
      "for (; passed < 0.2; passed = alone::seconds() - begin, ++calls) {}(buffers, sizes, scratch, 0, "
      "extent);",
      code.name);
  out.line("printf(\"{}: %.3f us a call\\n\", 1e6 * passed / (double)calls);", code.name);
  out.line("if (status != 0) printf(\"an index or a divisor was out of range for these numbers\\n\");");
  out.line("return 0;");
  out.close();
  return code.source + std::string(kHelpers) + out.text();
}

}  // namespace oxy::backend::cpu
