// The iterators of C's that the prelude's generators stand for, as their __reduce__ would give them.
#pragma once

#include <optional>

#include "eval/state/generator.h"

namespace oxy::eval {

struct RealIterator {
  Ref callable;   // makes it
  Ref arguments;  // a tuple
  Ref state;      // for its __setstate__; null: none
};

// Nothing if there is none that would go on as this generator of the prelude's does.
std::optional<RealIterator> real_iterator(const GeneratorData& data);

// Whether it stands for an iterator of C's that does not remember that it has ended: asked once more it asks
// what it goes over.
bool asks_again(const GeneratorData& data);

}  // namespace oxy::eval
