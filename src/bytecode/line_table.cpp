#include "bytecode/line_table.h"

#include <cstddef>

namespace oxy::bytecode {
namespace {

// Entry kinds of the location table (bits 3 to 6 of an entry's first byte); below OneLine0 the line does not
// change.
enum Kind { OneLine0 = 10, OneLine1 = 11, OneLine2 = 12, NoColumns = 13, Long = 14, None = 15 };

// Groups of six bits, lowest first, the sign in the lowest bit.
int32_t signed_number(const unsigned char*& next, const unsigned char* end) {
  uint32_t value = 0;
  for (int shift = 0; next < end; shift += 6) {
    const unsigned char group = *next++;
    value |= uint32_t(group & 63) << shift;
    if (!(group & 64)) break;
  }
  return (value & 1) ? -int32_t(value >> 1) : int32_t(value >> 1);
}

}  // namespace

std::vector<int32_t> line_of_unit(PyCodeObject* code) {
  const auto* next = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_linetable));
  const auto* end = next + PyBytes_GET_SIZE(code->co_linetable);
  std::vector<int32_t> lines;
  lines.reserve(size_t(Py_SIZE(code)));
  int32_t line = code->co_firstlineno;
  while (next < end) {
    const unsigned char first = *next++;
    const int kind = (first >> 3) & 15;
    if (kind == NoColumns || kind == Long) line += signed_number(next, end);
    if (kind >= OneLine0 && kind <= OneLine2) line += kind - OneLine0;
    lines.insert(lines.end(), (first & 7) + 1, kind == None ? -1 : line);
    while (next < end && !(*next & 0x80)) ++next;  // columns; only the first byte of an entry has the top bit
  }
  return lines;
}

}  // namespace oxy::bytecode
