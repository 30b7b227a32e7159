// The number of parts of reductions by trial: mode="max-autotune".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/shared/reductions/splits.h"

namespace oxy::backend {

// The kernels of a program whose reductions are divided in one way.
struct DividedProgram {
  std::shared_ptr<const void> owner;  // of the drafts
  Drafts drafts;
  Splits splits;  // those that were asked for, and what else was decided
};

using DivideProgram = std::function<DividedProgram(Splits)>;

// What differs from the choice of the costs because the device was faster then. Each reduction is tried on
// its own while the others stay as they are chosen.
std::map<Divided, PartCount> tuned_splits(const Backend& backend, const DivideProgram& divide);

}  // namespace oxy::backend
