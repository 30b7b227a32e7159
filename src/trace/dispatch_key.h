// What the dispatcher knows of tracing: the key of trace tensors, and the keys above and below it.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "torch_api/trace_key.h"

namespace oxy::trace {

using torch_api::kTraceKey;
inline constexpr c10::DispatchKeySet kTraceKeySet{kTraceKey};

// The name of the key, which PyTorch's words on a tensor that it finds no backend for have in them.
inline const char* tracing_key_name() {
  return c10::toString(kTraceKey);
}

// What must be off while an operator runs below the recorder, on real tensors or on PyTorch's meta device.
inline constexpr c10::DispatchKeySet kKeysOfTracing =
    kTraceKeySet | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});

// The caller is inside a functorch transform (vmap, grad). Transforms that the traced program enters itself
// need no care: what they do to trace tensors arrives here as plain operators.
inline bool inside_functorch() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

inline bool tracing_key_included() {
  return c10::impl::tls_is_dispatch_key_included(kTraceKey);
}
inline void include_tracing_key(bool on) {
  c10::impl::tls_set_dispatch_key_included(kTraceKey, on);
}

}  // namespace oxy::trace
