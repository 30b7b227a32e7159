// NVIDIA's driver: the few functions that kernels are loaded and launched by. It is a library of the system
// that is opened when it is first asked for. Nothing is linked against it, and no toolkit is needed.
#pragma once

#include <string>

namespace oxy::backend::cuda {

// As the driver's own headers have them (CUDA Driver API, "cuda.h").
using Result = int;  // 0: success
using Handle = void*;

struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*version)(int* version) = nullptr;  // 12040: CUDA 12.4
  Result (*device_count)(int* count) = nullptr;
  Result (*device_attribute)(int* value, int attribute, int device) = nullptr;
  Result (*error_text)(Result error, const char** text) = nullptr;
  Result (*load_library)(Handle* library, const void* code, int* options, void** values, unsigned count,
                         int* library_options, void** library_values, unsigned library_count) = nullptr;
  Result (*unload_library)(Handle library) = nullptr;
  Result (*get_kernel)(Handle* kernel, Handle library, const char* name) = nullptr;
  Result (*set_kernel_attribute)(int attribute, int value, Handle kernel, int device) = nullptr;
  Result (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream, void** arguments,
                   void** extra) = nullptr;
};

// Opens and initialises the driver once. Null where it is missing or too old; `missing` then says what is
// missing, in a sentence for the user.
const Driver* find_driver(std::string& missing);

// Throws InternalError with the driver's own text unless the call succeeded. `what`: "to load a kernel".
void check_call(const Driver& driver, Result result, const char* what);

// Major and minor of a card's compute capability: 90 for sm_90. -1 where the driver does not know the card.
int compute_capability(const Driver& driver, int device);

}  // namespace oxy::backend::cuda
