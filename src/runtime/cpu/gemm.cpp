// Matrix products, written straight into the planned buffer.
//
// Two libraries can do them: MKL (what eager calls) and oneDNN. On processors that are not Intel's, MKL runs
// its AVX2 code while oneDNN generates AVX-512 for what it finds; docs/notes-cpu-libraries.md has the
// measurements.
#include <ATen/Context.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include "base/processor.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/handlers.h"
#include "runtime/cpu/memory.h"

namespace at::native {
// Exported by torch but declared in no header. Weak: absent in a torch built without oneDNN.
__attribute__((weak)) void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta,
                                         float alpha);
}  // namespace at::native

namespace oxy::runtime {

namespace {

// Below this many multiply-adds, setting up a oneDNN primitive (10 us) costs more than MKL's slower code.
constexpr int64_t kOneDnnLeastWork = 1 << 20;

bool is_intel() {
  static const bool intel = __builtin_cpu_is("intel") != 0;
  return intel;
}

bool is_contiguous(const TensorSpec& spec) {
  int64_t expected = 1;
  for (size_t d = spec.sizes.size(); d-- > 0;) {
    if (spec.sizes[d] != 1 && spec.strides[d] != expected) return false;
    expected *= spec.sizes[d];
  }
  return true;
}

at::Tensor& target(at::Tensor* tensors, const ResultSlot& result, const TensorSpec& spec) {
  at::Tensor& tensor = tensors[result.slot];
  if (!result.planned) tensor = empty_on_cpu(spec);
  return tensor;
}

// The spec of `addend` broadcast to the shape of `result`; none if it does not broadcast.
std::optional<TensorSpec> broadcast(const TensorSpec& addend, const TensorSpec& result) {
  if (addend.rank() > result.rank()) return std::nullopt;
  TensorSpec spec{addend.dtype, result.sizes, std::vector<int64_t>(result.sizes.size(), 0), 0};
  const size_t skip = result.sizes.size() - addend.sizes.size();
  for (size_t d = 0; d < addend.sizes.size(); ++d) {
    if (addend.sizes[d] == result.sizes[skip + d])
      spec.strides[skip + d] = addend.strides[d];
    else if (addend.sizes[d] != 1)
      return std::nullopt;
  }
  return spec;
}

struct Product {
  Slot a, b;
  ResultSlot result;
  const TensorSpec* spec;  // of the result
};

// alpha * a @ b + beta * addend on oneDNN; `addend` none: the product alone.
Invoke onednn_product(Product p, Slot addend, std::optional<TensorSpec> broadcast_addend, double beta,
                      double alpha) {
  if (!broadcast_addend)
    return [p](at::Tensor* tensors) {
      onednn_matmul(tensors[p.a], tensors[p.b], target(tensors, p.result, *p.spec), 0.0f);
    };
  return [p, addend, spec = *broadcast_addend, beta = static_cast<float>(beta),
          alpha = static_cast<float>(alpha)](at::Tensor* tensors) {
    at::Tensor& result = target(tensors, p.result, *p.spec);
    result.copy_(view_of(tensors[addend], spec));
    onednn_matmul(tensors[p.a], tensors[p.b], result, beta, alpha);
  };
}

// The product of arguments `first` and `first + 1`, if its result is wanted.
std::optional<Product> product(const CallSite& site, size_t first) {
  if (site.results.size() != 1 || site.results[0].slot == kNoSlot) return std::nullopt;
  const Slot result = site.results[0].slot;
  return Product{site.tensor(first), site.tensor(first + 1), site.results[0], &site.spec(result)};
}

bool onednn_fits(const CallSite& site, const Product& p) {
  if (!is_contiguous(*p.spec)) return false;
  for (const Slot slot : {p.a, p.b})
    if (site.spec(slot).dtype != c10::kFloat) return false;
  const TensorSpec& a = site.spec(p.a);
  // A matrix-vector product is bound by memory, and oneDNN's corrupts the heap (PyTorch 2.13).
  for (const size_t d : {p.spec->sizes.size() - 2, p.spec->sizes.size() - 1})
    if (p.spec->sizes[d] == 1) return false;
  return p.spec->dtype == c10::kFloat && onednn_pays(p.spec->element_count(), a.sizes.back());
}

template <class Plain>
Invoke prepare_product(const CallSite& site, Plain plain) {
  const std::optional<Product> p = product(site, 0);
  if (!p) return {};
  if (onednn_fits(site, *p)) return onednn_product(*p, kNoSlot, std::nullopt, 0, 1);
  return [p = *p, plain](at::Tensor* tensors) {
    plain(tensors[p.a], tensors[p.b], target(tensors, p.result, *p.spec));
  };
}

template <class Plain>
Invoke prepare_sum(const CallSite& site, Plain plain) {
  const std::optional<Product> p = product(site, 1);
  if (!p) return {};
  for (const size_t scale : {3u, 4u})
    if (std::holds_alternative<std::complex<double>>(site.call.args.at(scale))) return {};
  const Slot addend = site.tensor(0);
  const double beta = site.number(3);
  const double alpha = site.number(4);
  if (beta != 0 && alpha != 0 && site.spec(addend).dtype == c10::kFloat && onednn_fits(site, *p))
    if (auto broadcast_addend = broadcast(site.spec(addend), *p->spec))
      return onednn_product(*p, addend, std::move(broadcast_addend), beta, alpha);
  // Integer products want integer scales.
  const auto scale = [&](size_t argument) {
    const auto* integer = std::get_if<Expr>(&site.call.args[argument]);
    return integer ? c10::Scalar(integer->constant()) : c10::Scalar(site.number(argument));
  };
  return [p = *p, addend, beta = scale(3), alpha = scale(4), plain](at::Tensor* tensors) {
    plain(tensors[addend], tensors[p.a], tensors[p.b], beta, alpha, target(tensors, p.result, *p.spec));
  };
}

}  // namespace

bool has_onednn_products() {
  return !is_intel() && &at::native::mkldnn_matmul != nullptr && onednn_takes_bfloat16();
}

bool onednn_pays(int64_t result_elements, int64_t inner) {
  if (!has_onednn_products()) return false;
  if (!at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return false;
  return inner > 0 && result_elements * inner >= kOneDnnLeastWork;
}

void onednn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& result, float beta,
                   float alpha) {
  at::native::mkldnn_matmul(for_reading(a), for_reading(b), result, beta, alpha);
}

Invoke prepare_mm(const CallSite& site) {
  return prepare_product(site, [](const at::Tensor& a, const at::Tensor& b, at::Tensor& result) {
    at::cpu::mm_outf(a, b, result);
  });
}

Invoke prepare_bmm(const CallSite& site) {
  return prepare_product(site, [](const at::Tensor& a, const at::Tensor& b, at::Tensor& result) {
    at::cpu::bmm_outf(a, b, result);
  });
}

Invoke prepare_addmm(const CallSite& site) {
  return prepare_sum(site, [](const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                              const c10::Scalar& beta, const c10::Scalar& alpha, at::Tensor& result) {
    at::cpu::addmm_outf(addend, a, b, beta, alpha, result);
  });
}

Invoke prepare_baddbmm(const CallSite& site) {
  return prepare_sum(site, [](const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b,
                              const c10::Scalar& beta, const c10::Scalar& alpha, at::Tensor& result) {
    at::cpu::baddbmm_outf(addend, a, b, beta, alpha, result);
  });
}

}  // namespace oxy::runtime
