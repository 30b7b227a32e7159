#include "runtime/cuda/cublas_lt.h"

#include <dlfcn.h>
#include <link.h>

#include <optional>
#include <string>
#include <string_view>

namespace oxy::runtime {

namespace {

constexpr size_t kOldest = 120000, kTooNew = 140000;

// The path of the loaded library; empty: there is none.
std::string loaded_path() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t /*size*/, void* data) {
        const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (name.find("libcublasLt.so") == name.npos) return 0;
        *static_cast<std::string*>(data) = name;
        return 1;
      },
      &path);
  return path;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<CublasLt> opened() {
  const std::string path = loaded_path();
  void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  CublasLt lt;
  const bool is_complete = find(library, "cublasLtCreate", lt.create) &&
                           find(library, "cublasLtGetVersion", lt.version) &&
                           find(library, "cublasLtMatmulDescCreate", lt.create_product) &&
                           find(library, "cublasLtMatmulDescDestroy", lt.destroy_product) &&
                           find(library, "cublasLtMatmulDescSetAttribute", lt.set_product) &&
                           find(library, "cublasLtMatrixLayoutCreate", lt.create_layout) &&
                           find(library, "cublasLtMatrixLayoutDestroy", lt.destroy_layout) &&
                           find(library, "cublasLtMatmulPreferenceCreate", lt.create_preference) &&
                           find(library, "cublasLtMatmulPreferenceDestroy", lt.destroy_preference) &&
                           find(library, "cublasLtMatmulPreferenceSetAttribute", lt.set_preference) &&
                           find(library, "cublasLtMatmulAlgoGetHeuristic", lt.choose) &&
                           find(library, "cublasLtMatmul", lt.multiply);
  const bool is_known = is_complete && lt.version() >= kOldest && lt.version() < kTooNew;
  return is_known ? std::optional(lt) : std::nullopt;
}

}  // namespace

const CublasLt* find_cublas_lt() {
  static const std::optional<CublasLt> once = opened();
  return once ? &*once : nullptr;
}

}  // namespace oxy::runtime
