#include "backend/cuda/load/cubin.h"

#include <vector>

#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

constexpr int kMostDynamicSharedBytes = 8;        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int32_t kSharedBytesOfAll = 48 * 1024;  // a kernel that needs more has to say so

class Library final : public KernelLibrary {
 public:
  explicit Library(const Driver& driver) : driver_(driver) {}
  ~Library() override {
    for (const Handle library : libraries_) driver_.unload_library(library);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void add(const NamedKernel& named) {
    const CompiledKernel& kernel = named.compiled;
    Handle library = nullptr, function = nullptr;
    check_call(
        driver_,
        driver_.load_library(&library, kernel.machine_code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "to load a kernel");
    libraries_.push_back(library);
    check_call(driver_, driver_.get_kernel(&function, library, named.name.c_str()), "to find a kernel");
    if (kernel.shared_bytes > kSharedBytesOfAll) {
      int devices = 0;
      check_call(driver_, driver_.device_count(&devices), "to count the cards");
      for (int device = 0; device < devices; ++device)
        check_call(
            driver_,
            driver_.set_kernel_attribute(kMostDynamicSharedBytes, kernel.shared_bytes, function, device),
            "shared memory to a kernel");
    }
    functions_.push_back(
        {function, kernel.threads, kernel.shared_bytes, kernel.extra_pointers, named.starts_early});
  }

  KernelFunction function(size_t kernel) const override {
    check(kernel < functions_.size(), "a library has no such kernel");
    return functions_[kernel];
  }

 private:
  const Driver& driver_;
  std::vector<Handle> libraries_;
  std::vector<GridFunction> functions_;
};

}  // namespace

std::shared_ptr<KernelLibrary> load_kernels(const Driver& driver, std::span<const NamedKernel> kernels) {
  auto library = std::make_shared<Library>(driver);
  for (const NamedKernel& kernel : kernels) library->add(kernel);
  return library;
}

}  // namespace oxy::backend::cuda
