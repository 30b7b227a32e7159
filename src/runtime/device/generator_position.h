// Where a device's default generator of random numbers stands, for generators that count what is drawn.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace oxy::runtime {

struct GeneratorPosition {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

GeneratorPosition generator_position(c10::Device device);

// Takes `count` from the generator, as an operator does that draws so much. The position before that.
GeneratorPosition advance_generator(c10::Device device, uint64_t count);

}  // namespace oxy::runtime
