// Recognises nests that turn rows into columns.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

// Makes the nest walk square tiles if that lets loads run along memory that lanes would jump through. `nest`
// has been finished; it stays so.
void tile_transposes(backend::LoopNest& nest);

}  // namespace oxy::backend::cpu
