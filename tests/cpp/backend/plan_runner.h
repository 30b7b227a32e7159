// Runs plans of kernel launches alone, on plain memory, for tests of the back end.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "backend/cpu/jit/jit.h"
#include "loop/interpreter.h"
#include "plan/plan.h"

namespace oxy::testing {

using loop::Array;

inline float half_to_float(uint16_t h) {
  int exponent = h >> 10 & 31;
  int fraction = h & 1023;
  float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                    : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                    : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return h >> 15 ? -magnitude : magnitude;
}

inline void write_element(char* p, DType dtype, double f, int64_t i) {
  auto put = [&](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (dtype) {
    case DType::Float32:
      return put(static_cast<float>(f));
    case DType::Float64:
      return put(f);
    case DType::BFloat16: {
      auto v = static_cast<float>(f);
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      return put(static_cast<uint16_t>(bits >> 16));  // values are rounded already
    }
    case DType::Float16: {
      for (uint32_t h = 0; h < 65536; ++h)
        if (half_to_float(static_cast<uint16_t>(h)) == static_cast<float>(f))
          return put(static_cast<uint16_t>(h));
      throw std::runtime_error("no float16 value");
    }
    default:
      std::memcpy(p, &i, item_size(dtype));  // little endian
  }
}

inline void read_element(const char* p, DType dtype, double& f, int64_t& i) {
  auto get = [&](auto v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (dtype) {
    case DType::Float32:
      f = get(float{});
      return;
    case DType::Float64:
      f = get(double{});
      return;
    case DType::Float16:
      f = half_to_float(get(uint16_t{}));
      return;
    case DType::BFloat16: {
      uint32_t bits = static_cast<uint32_t>(get(uint16_t{})) << 16;
      float v;
      std::memcpy(&v, &bits, 4);
      f = v;
      return;
    }
    case DType::Bool:
    case DType::UInt8:
      i = get(uint8_t{});
      return;
    case DType::Int8:
      i = get(int8_t{});
      return;
    case DType::Int16:
      i = get(int16_t{});
      return;
    case DType::Int32:
      i = get(int32_t{});
      return;
    default:
      i = get(int64_t{});
      return;
  }
}

using Symbols = std::map<int64_t, int64_t>;  // by variable id

inline int64_t value_of(const sym::Expr& e, const Symbols& symbols) {
  return sym::evaluate(e, [&](int64_t id) -> std::optional<int64_t> {
    auto found = symbols.find(id);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  });
}

// Calls fn(memory index, row-major index) for every element.
template <class Fn>
void for_each_element(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset,
                      Fn fn) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, at = offset;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    fn(at, k);
  }
}

class PlanRunner {
 public:
  PlanRunner(const plan::Plan& plan, std::shared_ptr<backend::KernelLibrary> library, Symbols symbols = {})
      : plan_(plan), library_(std::move(library)), symbols_(std::move(symbols)) {
    for (const plan::Definition& definition : plan.definitions)
      symbols_[definition.variable.variable_id()] = eval(definition.value);
    arena_.resize(static_cast<size_t>(eval(plan.arena_bytes)) + 128);
    auto base = reinterpret_cast<uintptr_t>(arena_.data());
    char* aligned = arena_.data() + (64 - base % 64) % 64;
    for (const plan::Buffer& buffer : plan.buffers) {
      if (has_no_elements(buffer)) {  // an empty tensor has no memory
        memory_.add(nullptr);
        continue;
      }
      if (buffer.storage == plan::Storage::Arena) {
        memory_.add(aligned + eval(buffer.arena_offset));
        continue;
      }
      owned_.push_back(std::vector<char>(span_bytes(buffer) + 64));
      memory_.add(owned_.back().data());
    }
  }

  int64_t eval(const sym::Expr& e) const { return value_of(e, symbols_); }
  std::vector<int64_t> eval(const std::vector<sym::Expr>& list) const {
    std::vector<int64_t> out;
    for (const sym::Expr& e : list) out.push_back(eval(e));
    return out;
  }

  void set_input(const Array& array, int32_t slot, plan::Storage storage = plan::Storage::Input) {
    for (const plan::BufferId id : plan_.buffers.ids()) {
      const plan::Buffer& buffer = plan_.buffers[id];
      if (buffer.storage != storage || buffer.slot != slot) continue;
      for_each_element(array.sizes, eval(buffer.strides), 0, [&](int64_t at, int64_t k) {
        write_element(memory_[id] + at * static_cast<int64_t>(item_size(buffer.dtype)), buffer.dtype,
                      array.floats.empty() ? 0 : array.floats[static_cast<size_t>(k)],
                      array.ints.empty() ? 0 : array.ints[static_cast<size_t>(k)]);
      });
    }
  }

  // Runs all launches, each slice of `slices` on its own; the or of what the kernels return.
  int run(int64_t slices = 1) {
    int status = 0;
    for (const plan::Step& step : plan_.steps) {
      if (std::holds_alternative<plan::Free>(step)) continue;  // the runner keeps all memory
      const auto& launch = std::get<plan::Launch>(step);
      std::vector<void*> buffers;
      for (plan::BufferId id : launch.buffers) buffers.push_back(memory_[id]);
      std::vector<int64_t> sizes = eval(launch.sizes);
      const auto& shape = std::get<plan::Slices>(launch.shape);
      std::vector<char> scratch(static_cast<size_t>(eval(shape.scratch_bytes)) + 128);
      char* row = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      int64_t extent = eval(shape.extent);
      int64_t parts = shape.grain > extent ? 1 : slices;
      int64_t chunk = std::max<int64_t>(1, (extent + parts - 1) / parts);
      auto function = std::get<backend::SliceFunction>(library_->function(launch.kernel.index()));
      for (int64_t begin = 0; begin < extent; begin += chunk)
        status |= function(buffers.data(), sizes.data(), row, begin, std::min(extent, begin + chunk));
    }
    return status;
  }

  Array output(size_t k) const {
    const plan::Output& out = plan_.outputs.at(k);
    return read(out.view, out.dtype);
  }
  Array mutation(size_t k) const {
    const plan::View& view = plan_.mutations.at(k).value;
    return read(view, plan_.buffers[view.buffer].dtype);
  }
  char* memory(plan::BufferId id) { return memory_[id]; }

 private:
  bool has_no_elements(const plan::Buffer& buffer) const {
    for (const sym::Expr& size : buffer.sizes)
      if (eval(size) == 0) return true;
    return false;
  }

  size_t span_bytes(const plan::Buffer& buffer) const {
    int64_t span = 1;
    for (size_t d = 0; d < buffer.sizes.size(); ++d)
      span += std::max<int64_t>(eval(buffer.sizes[d]) - 1, 0) * eval(buffer.strides[d]);
    return static_cast<size_t>(span) * item_size(buffer.dtype);
  }

  Array read(const plan::View& view, DType dtype) const {
    Array array{dtype, eval(view.sizes), {}, {}};
    const char* base = memory_[view.buffer];
    for_each_element(array.sizes, eval(view.strides), eval(view.offset), [&](int64_t at, int64_t) {
      double f = 0;
      int64_t i = 0;
      read_element(base + at * static_cast<int64_t>(item_size(dtype)), dtype, f, i);
      if (is_floating(dtype))
        array.floats.push_back(f);
      else
        array.ints.push_back(i);
    });
    return array;
  }

  const plan::Plan& plan_;
  std::shared_ptr<backend::KernelLibrary> library_;
  Symbols symbols_;
  std::vector<char> arena_;
  std::vector<std::vector<char>> owned_;
  IdVector<plan::BufferId, char*> memory_;
};

}  // namespace oxy::testing
