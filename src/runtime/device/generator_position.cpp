#include "runtime/device/generator_position.h"

#include <ATen/Context.h>

#include <mutex>

namespace oxy::runtime {

GeneratorPosition generator_position(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return {generator.current_seed(), generator.get_offset()};
}

GeneratorPosition advance_generator(c10::Device device, uint64_t count) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  const GeneratorPosition position{generator.current_seed(), generator.get_offset()};
  generator.set_offset(position.offset + count);
  return position;
}

}  // namespace oxy::runtime
