// Scans along the columns of a block.
#pragma once

#include "backend/cuda/print/block_printer.h"

namespace oxy::backend::cuda {

// For each element of the block: the combination, by the scan `kind`, of it and those before it in its row.
// Columns beyond the row come last, so that what they hold reaches no element.
Value scan_block(BlockPrinter& block, loop::ReductionKind kind, const Value& value);

// In the loop that walks a row in steps: `scanned`, which scan_block() has made, combined with the last
// element of the step before.
Value continue_scan(BlockPrinter& block, loop::ReductionKind kind, const Value& scanned);

}  // namespace oxy::backend::cuda
