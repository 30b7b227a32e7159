#pragma once

namespace oxy::trace {

// Puts the recorder behind the dispatch key of trace tensors. Idempotent, thread-safe; stays for the
// process's life.
void install_recorder();

}  // namespace oxy::trace
