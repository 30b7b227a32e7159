// Recognises nests that turn rows into columns.
#pragma once

#include "codegen/loop_nest.h"

namespace oxy::sched {

// Makes the nest walk square tiles if that lets loads run along memory that lanes would jump through. `nest`
// has been finished; it stays so.
void tile_transposes(codegen::LoopNest& nest);

}  // namespace oxy::sched
