#include "loop/devices.h"

#include <algorithm>

namespace oxy::loop {

Device device_of(const Program& program, const Computation& computation) {
  for (const Store& store : computation.stores)
    if (store.buffer != kNoBuffer) return program.buffers[store.buffer].device;
  for (const Inst& inst : computation.body.insts)
    if (inst.op == Op::Load) return program.buffers[inst.buffer].device;
  return {};
}

Device main_device(const Program& program) {
  const auto found =
      std::ranges::find_if(program.buffers, [](const Buffer& buffer) { return !is_on_host(buffer.device); });
  return found == program.buffers.end() ? Device{} : found->device;
}

}  // namespace oxy::loop
