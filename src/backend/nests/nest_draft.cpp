#include "backend/nests/nest_draft.h"

#include <fmt/format.h>

#include "backend/nests/in_place.h"

namespace oxy::backend {

namespace {

bool is_memory(const Array& array) {
  return array.kind == ArrayKind::Parameter && (array.is_read || array.is_written);
}

}  // namespace

void NestDraft::for_each_buffer(const std::function<void(BufferId, bool)>& fn) const {
  for (const Array& array : nest.arrays)
    if (is_memory(array)) fn(array.buffer, array.is_written);
}

std::vector<std::pair<BufferId, BufferId>> NestDraft::write_in_place(
    const Test& dies, const Test& is_new, const std::function<bool(BufferId, BufferId)>& same_size) {
  return backend::write_in_place(nest, dies, is_new, same_size);
}

std::string NestDraft::print() const {
  std::string out = backend::print(nest) + " ";
  for (const ArrayId id : nest.arrays.ids())
    if (const Array& array = nest.arrays[id]; is_memory(array))
      out += fmt::format(" array{} = {}{}", id, program.buffers[array.buffer].name,
                         array.is_written ? " (written)" : "");
  return out + "\n";
}

}  // namespace oxy::backend
