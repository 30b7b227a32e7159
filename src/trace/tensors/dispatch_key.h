// The dispatch key of trace tensors, and operations on the dispatcher's thread-local keys.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "torch_api/trace_key.h"

namespace oxy::trace {

using torch_api::kTraceKey;
inline constexpr c10::DispatchKeySet kTraceKeySet{kTraceKey};

// The name of the key. PyTorch's error about a tensor without a backend contains it.
inline const char* tracing_key_name() {
  return c10::toString(kTraceKey);
}

// The keys to exclude while an operator runs below the recorder, on real tensors or on PyTorch's meta device.
inline constexpr c10::DispatchKeySet kKeysOfTracing =
    kTraceKeySet | c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});

// Whether the thread is inside a functorch transform (vmap, grad). Transforms that the traced program enters
// itself need no care: they call plain operators on trace tensors.
inline bool inside_functorch() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// Whether all operators on this thread reach the recorder, also those without a trace tensor.
inline bool tracing_key_included() {
  return c10::impl::tls_is_dispatch_key_included(kTraceKey);
}
inline void include_tracing_key(bool on) {
  c10::impl::tls_set_dispatch_key_included(kTraceKey, on);
}

}  // namespace oxy::trace
