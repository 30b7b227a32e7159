// cuBLASLt: the functions of NVIDIA's library of matrix products by which it adds a matrix and a row to a
// product before it stores it. No operator of PyTorch's asks for both. PyTorch has loaded the library;
// nothing is linked against it, and no toolkit is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oxy::runtime {

// As the library's own header has them ("cublasLt.h", versions 12 and 13).
struct CublasLt {
  using Status = int;  // 0: success
  using Handle = void*;
  static constexpr int kHalf = 2, kBFloat16 = 14, kFloat = 0;                       // cudaDataType_t
  static constexpr int kComputeInFloat = 68;                                        // cublasComputeType_t
  static constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBias = 8;  // of a product
  static constexpr uint32_t kEpilogueWithBias = 4;
  static constexpr int kMostWorkspace = 1, kFirstAlignment = 5;  // of a preference; 5 to 8: of A, B, C, D

  struct Algorithm {
    uint64_t data[8];
  };
  struct Choice {
    Algorithm algorithm;
    size_t workspace_bytes;
    Status state;
    float waves;
    int reserved[4];
  };

  Status (*create)(Handle* library) = nullptr;
  size_t (*version)() = nullptr;  // 130001: 13.0.1
  Status (*create_product)(Handle* product, int compute_type, int scale_type) = nullptr;
  Status (*destroy_product)(Handle product) = nullptr;
  Status (*set_product)(Handle product, int attribute, const void* value, size_t bytes) = nullptr;
  Status (*create_layout)(Handle* layout, int type, uint64_t rows, uint64_t columns, int64_t step) = nullptr;
  Status (*destroy_layout)(Handle layout) = nullptr;
  Status (*create_preference)(Handle* preference) = nullptr;
  Status (*destroy_preference)(Handle preference) = nullptr;
  Status (*set_preference)(Handle preference, int attribute, const void* value, size_t bytes) = nullptr;
  Status (*choose)(Handle library, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference,
                   int wanted, Choice* choices, int* count) = nullptr;
  // d = alpha * a @ b + beta * c, column by column; `alpha` and `beta` are read on the host.
  Status (*multiply)(Handle library, Handle product, const void* alpha, const void* a, Handle a_layout,
                     const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout,
                     void* d, Handle d_layout, const Algorithm* algorithm, void* workspace,
                     size_t workspace_bytes, Handle stream) = nullptr;
};

// Null: the process has not loaded it, or a version that is not known here. It lives for ever. Thread-safe.
const CublasLt* find_cublas_lt();

}  // namespace oxy::runtime
