// Turns generators of the prelude back into the C iterators that they stand for (zip, map, enumerate ...),
// where they come out of a region.
#pragma once

#include <optional>

#include "eval/state/generator.h"

namespace oxy::eval {

// The parts of the iterator's __reduce__().
struct RealIterator {
  Ref callable;   // makes it
  Ref arguments;  // a tuple
  Ref state;      // for its __setstate__; null: none
};

// The C iterator that would go on exactly as this generator of the prelude does. Nothing if there is none.
std::optional<RealIterator> real_iterator(const GeneratorData& data);

// Whether the C iterator does not remember that it has ended: if asked once more, it asks what it goes over
// again.
bool asks_again(const GeneratorData& data);

}  // namespace oxy::eval
