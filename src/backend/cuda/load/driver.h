// NVIDIA's driver: the few functions by which kernels are loaded, launched and recorded. It is a library of
// the system that is opened when it is first asked for. Nothing is linked against it, and no toolkit is
// needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace oxy::backend::cuda {

// As the driver's own headers have them (CUDA Driver API, "cuda.h").
using Result = int;  // 0: success
using Handle = void*;

// The keys of `extra` (CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE): each is followed by its
// value. A null ends the list.
inline void* const kParameterBuffer = reinterpret_cast<void*>(1);
inline void* const kParameterBytes = reinterpret_cast<void*>(2);

// A node of a CUDA graph that launches a kernel (CUDA_KERNEL_NODE_PARAMS_v2). Either `parameters` has an
// address for each parameter of the kernel, or `extra` names one buffer with all of them.
struct KernelNode {
  Handle function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  Handle kernel;
  Handle context;
};

// CUDA_MEMCPY3D. `source` and `target` are device memory where the types say so.
struct CopyNode {
  size_t source_x, source_y, source_z, source_level;
  unsigned source_type;
  const void* source_host;
  uint64_t source;
  Handle source_array;
  void* source_reserved;
  size_t source_pitch, source_height;
  size_t target_x, target_y, target_z, target_level;
  unsigned target_type;
  void* target_host;
  uint64_t target;
  Handle target_array;
  void* target_reserved;
  size_t target_pitch, target_height;
  size_t width, height, depth;
};

// CUDA_MEMSET_NODE_PARAMS.
struct FillNode {
  uint64_t target;
  size_t pitch;
  unsigned value;
  unsigned item_bytes;
  size_t width, height;
};

// CUmemLocation, CUmemAllocationProp, CUmemAccessDesc: physical memory of a device, and who may use it.
struct MemoryLocation {
  int kind = 1;  // a device
  int index = 0;
};
struct PhysicalMemory {
  int kind = 1;  // it stays where it is
  int handle_kinds = 0;
  MemoryLocation location;
  void* reserved = nullptr;
  unsigned char flags[8] = {};
};
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;  // reads and writes
};

// CUlaunchAttribute and CUlaunchConfig: how a kernel is launched.
struct alignas(8) LaunchAttribute {
  int kind = 0;
  int padding = 0;
  int value[16] = {};
};
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// The functions that CUDA graphs need. The driver has them from CUDA 12.4 on.
struct GraphFunctions {
  Result (*create_stream)(Handle* stream, unsigned flags) = nullptr;
  Result (*begin_capture)(Handle stream, int mode) = nullptr;
  Result (*end_capture)(Handle stream, Handle* graph) = nullptr;
  Result (*is_capturing)(Handle stream, int* status) = nullptr;
  Result (*capture_info)(Handle stream, int* status, uint64_t* id, Handle* graph, const Handle** dependencies,
                         size_t* count) = nullptr;
  // `flags`: 0 adds to what the next node of the capture follows, 1 replaces it.
  Result (*follow)(Handle stream, Handle* nodes, size_t count, unsigned flags) = nullptr;
  Result (*nodes)(Handle graph, Handle* nodes, size_t* count) = nullptr;
  Result (*node_type)(Handle node, int* type) = nullptr;
  Result (*get_kernel)(Handle node, KernelNode* parameters) = nullptr;
  Result (*get_copy)(Handle node, CopyNode* parameters) = nullptr;
  Result (*get_fill)(Handle node, FillNode* parameters) = nullptr;
  Result (*set_kernel)(Handle executable, Handle node, const KernelNode* parameters) = nullptr;
  Result (*set_copy)(Handle executable, Handle node, const CopyNode* parameters, Handle context) = nullptr;
  Result (*set_fill)(Handle executable, Handle node, const FillNode* parameters, Handle context) = nullptr;
  Result (*function_parameter)(Handle function, size_t index, size_t* offset, size_t* bytes) = nullptr;
  Result (*kernel_parameter)(Handle kernel, size_t index, size_t* offset, size_t* bytes) = nullptr;
  Result (*instantiate)(Handle* executable, Handle graph, unsigned long long flags) = nullptr;
  Result (*launch)(Handle executable, Handle stream) = nullptr;
  Result (*destroy_executable)(Handle executable) = nullptr;
  Result (*destroy)(Handle graph) = nullptr;
  Result (*pointer_attribute)(void* value, int attribute, uint64_t pointer) = nullptr;
  Result (*granularity)(size_t* bytes, const PhysicalMemory* memory, int option) = nullptr;
  Result (*create_memory)(uint64_t* handle, size_t bytes, const PhysicalMemory* memory,
                          unsigned long long flags) = nullptr;
  Result (*release_memory)(uint64_t handle) = nullptr;
  Result (*reserve_addresses)(uint64_t* pointer, size_t bytes, size_t alignment, uint64_t wish,
                              unsigned long long flags) = nullptr;
  Result (*free_addresses)(uint64_t pointer, size_t bytes) = nullptr;
  Result (*map_memory)(uint64_t pointer, size_t bytes, size_t offset, uint64_t handle,
                       unsigned long long flags) = nullptr;
  Result (*unmap_memory)(uint64_t pointer, size_t bytes) = nullptr;
  Result (*set_access)(uint64_t pointer, size_t bytes, const MemoryAccess* access, size_t count) = nullptr;

  bool is_complete() const { return set_access != nullptr; }
};

// The functions that time kernels on a stream of their own.
struct TimingFunctions {
  Result (*create_stream)(Handle* stream, unsigned flags) = nullptr;
  Result (*destroy_stream)(Handle stream) = nullptr;
  Result (*wait_for_stream)(Handle stream) = nullptr;
  Result (*create_event)(Handle* event, unsigned flags) = nullptr;
  Result (*destroy_event)(Handle event) = nullptr;
  Result (*record)(Handle event, Handle stream) = nullptr;
  Result (*wait_for_event)(Handle event) = nullptr;
  Result (*elapsed)(float* milliseconds, Handle begin, Handle end) = nullptr;
  Result (*allocate)(uint64_t* pointer, size_t bytes) = nullptr;
  Result (*free)(uint64_t pointer) = nullptr;
  Result (*fill)(uint64_t pointer, unsigned char value, size_t bytes, Handle stream) = nullptr;
  // What a thread's captures of other streams forbid it (CUstreamCaptureMode); gives the mode before.
  Result (*exchange_capture_mode)(int* mode) = nullptr;

  bool is_complete() const { return exchange_capture_mode != nullptr; }
};

struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*version)(int* version) = nullptr;  // 12040: CUDA 12.4
  Result (*device_count)(int* count) = nullptr;
  Result (*device_attribute)(int* value, int attribute, int device) = nullptr;
  Result (*device_name)(char* name, int bytes, int device) = nullptr;
  Result (*current_context)(Handle* context) = nullptr;
  Result (*make_current)(Handle context) = nullptr;
  Result (*retain_primary_context)(Handle* context, int device) = nullptr;
  Result (*release_primary_context)(int device) = nullptr;
  Result (*error_text)(Result error, const char** text) = nullptr;
  Result (*load_library)(Handle* library, const void* code, int* options, void** values, unsigned count,
                         int* library_options, void** library_values, unsigned library_count) = nullptr;
  Result (*unload_library)(Handle library) = nullptr;
  Result (*get_kernel)(Handle* kernel, Handle library, const char* name) = nullptr;
  Result (*set_kernel_attribute)(int attribute, int value, Handle kernel, int device) = nullptr;
  Result (*launch)(const LaunchConfig* config, Handle function, void** arguments, void** extra) = nullptr;
  // `source` is pageable memory of the host. It may be freed once the call has returned.
  Result (*copy_to_device)(uint64_t target, const void* source, size_t bytes, Handle stream) = nullptr;
  GraphFunctions graphs;   // all or none
  TimingFunctions timing;  // likewise
};

// Opens and initialises the driver once. Null where it is missing or too old; `missing` then says what is
// missing, in a sentence for the user.
const Driver* find_driver(std::string& missing);

// Throws InternalError with the driver's own text unless the call succeeded. `what`: "to load a kernel".
void check_call(const Driver& driver, Result result, const char* what);

// Major and minor of a card's compute capability: 90 for sm_90. -1 where the driver does not know the card.
int compute_capability(const Driver& driver, int device);

// "NVIDIA H100 80GB HBM3"; empty where the driver does not know the card.
std::string card_name(const Driver& driver, int device);

}  // namespace oxy::backend::cuda
