// Connects the recorder to PyTorch's dispatcher.
#pragma once

namespace oxy::trace {

// Registers the recorder's boxed fallback for the dispatch key of trace tensors. It stays for the life of the
// process. Idempotent and thread-safe.
void install_recorder();

}  // namespace oxy::trace
