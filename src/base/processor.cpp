#include "base/processor.h"

namespace oxy {

#if defined(__x86_64__)

bool onednn_takes_bfloat16() {
  static const bool takes = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq");
  return takes;
}

bool onednn_takes_float16() {
  static const bool takes = onednn_takes_bfloat16() && __builtin_cpu_supports("avx512fp16");
  return takes;
}

#else

bool onednn_takes_bfloat16() {
  return true;
}
bool onednn_takes_float16() {
  return true;
}

#endif

}  // namespace oxy
