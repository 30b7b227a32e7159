// What PyTorch's libraries can do on this processor.
#pragma once

namespace oxy {

// oneDNN computes with bfloat16, and PyTorch leaves such operators to it. Without, it has slower kernels of
// its own, and mkldnn_matmul() raises, for float32 too.
bool onednn_takes_bfloat16();
// Likewise with float16.
bool onednn_takes_float16();

}  // namespace oxy
