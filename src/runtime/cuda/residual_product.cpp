#include "runtime/cuda/residual_product.h"

#include <ATen/Context.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>

#include "base/log.h"
#include "runtime/cuda/cublas_lt.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

namespace {

constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;  // bytes, as PyTorch's for these products
constexpr size_t kMostKnown = 4096;                      // choices
constexpr uint32_t kAlignment = 16;                      // bytes

// A matrix as the library sees it: columns that lie side by side. Matrices of PyTorch's are rows, so that the
// library computes the transposed product.
struct Columns {
  int64_t rows = 0, columns = 0, step = 0;
  bool is_transposed = false;  // of what is wanted
  friend auto operator<=>(const Columns&, const Columns&) = default;
};

struct Problem {
  c10::DeviceIndex device = 0;
  c10::ScalarType dtype = c10::ScalarType::Half;
  Columns weight, rows, residual, result;
  bool has_bias = false;
  friend auto operator<=>(const Problem&, const Problem&) = default;
};

// Whether PyTorch's settings for products are the usual ones. Others are left to PyTorch's operators.
template <class Option>
bool is_usual(Option reduction) {
  if constexpr (std::is_same_v<Option, bool>)
    return reduction;
  else
    return reduction == Option::AllowReducedPrecisionWithSplitK;
}

bool has_usual_settings(c10::ScalarType dtype) {
  const at::Context& context = at::globalContext();
  return !context.deterministicAlgorithms() &&
         (dtype == c10::ScalarType::Half ? is_usual(context.allowFP16ReductionCuBLAS())
                                         : is_usual(context.allowBF16ReductionCuBLAS()));
}

// Nothing: neither rows nor columns lie side by side.
std::optional<Columns> columns_of(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  if (matrix.stride(1) == 1 && matrix.stride(0) >= columns) return Columns{columns, rows, matrix.stride(0)};
  if (matrix.stride(0) == 1 && matrix.stride(1) >= rows)
    return Columns{rows, columns, matrix.stride(1), true};
  return std::nullopt;
}

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

struct Operands {
  const at::Tensor &residual, &mat1, &mat2;
  const at::Tensor* bias;  // or null
};

// Nothing: it is not one for the library.
std::optional<Problem> problem_of(const Operands& operands, const at::Tensor& result) {
  const std::optional<Columns> weight = columns_of(operands.mat2), rows = columns_of(operands.mat1),
                               residual = columns_of(operands.residual), stored = columns_of(result);
  const auto lies_there = [&](const at::Tensor& tensor) {
    return tensor.is_cuda() && tensor.device() == result.device();
  };
  if (!lies_there(operands.residual) || !lies_there(operands.mat1) || !lies_there(operands.mat2) ||
      (operands.bias != nullptr && (!lies_there(*operands.bias) || operands.bias->numel() != result.size(1))))
    return std::nullopt;
  const bool are_matrices = weight && rows && residual && stored && !residual->is_transposed &&
                            !stored->is_transposed && operands.mat1.numel() > 0 && operands.mat2.numel() > 0;
  const bool are_aligned = is_aligned(operands.residual) && is_aligned(operands.mat1) &&
                           is_aligned(operands.mat2) && is_aligned(result) &&
                           (operands.bias == nullptr || is_aligned(*operands.bias));
  if (!are_matrices || !are_aligned) return std::nullopt;
  return Problem{result.device().index(), result.scalar_type(), *weight, *rows, *residual, *stored,
                 operands.bias != nullptr};
}

// What the library makes for a call, and destroys behind it.
class Made {
 public:
  using Destroy = CublasLt::Status (*)(CublasLt::Handle);
  explicit Made(Destroy destroy) : destroy_(destroy) {}
  ~Made() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  CublasLt::Handle* place() { return &handle_; }
  CublasLt::Handle get() const { return handle_; }

 private:
  Destroy destroy_;
  CublasLt::Handle handle_ = nullptr;
};

int data_type(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Half ? CublasLt::kHalf : CublasLt::kBFloat16;
}

struct Described {
  explicit Described(const CublasLt& lt)
      : product(lt.destroy_product),
        weight(lt.destroy_layout),
        rows(lt.destroy_layout),
        residual(lt.destroy_layout),
        result(lt.destroy_layout) {}
  Made product, weight, rows, residual, result;
};

bool describe(const CublasLt& lt, const Problem& problem, const void* bias, Described& described) {
  const auto layout = [&](Made& made, const Columns& matrix) {
    return lt.create_layout(made.place(), data_type(problem.dtype), static_cast<uint64_t>(matrix.rows),
                            static_cast<uint64_t>(matrix.columns), matrix.step) == 0;
  };
  const auto set = [&](int attribute, const auto& value) {
    return lt.set_product(described.product.get(), attribute, &value, sizeof value) == 0;
  };
  const int32_t transposes_weight = problem.weight.is_transposed ? 1 : 0,
                transposes_rows = problem.rows.is_transposed ? 1 : 0;
  return lt.create_product(described.product.place(), CublasLt::kComputeInFloat, CublasLt::kFloat) == 0 &&
         set(CublasLt::kTransposeA, transposes_weight) && set(CublasLt::kTransposeB, transposes_rows) &&
         (!problem.has_bias ||
          (set(CublasLt::kEpilogue, CublasLt::kEpilogueWithBias) && set(CublasLt::kBias, bias))) &&
         layout(described.weight, problem.weight) && layout(described.rows, problem.rows) &&
         layout(described.residual, problem.residual) && layout(described.result, problem.result);
}

// One for each device, for ever. Null: there is none.
CublasLt::Handle library_of(const CublasLt& lt, c10::DeviceIndex device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, CublasLt::Handle> known;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace(device, nullptr);
  if (is_new && lt.create(&entry->second) != 0) {  // out of memory: another time
    known.erase(entry);
    return nullptr;
  }
  return entry->second;
}

std::optional<CublasLt::Choice> chosen_now(const CublasLt& lt, CublasLt::Handle library,
                                           const Described& described) {
  Made preference(lt.destroy_preference);
  if (lt.create_preference(preference.place()) != 0) return std::nullopt;
  bool is_set = lt.set_preference(preference.get(), CublasLt::kMostWorkspace, &kMostWorkspace,
                                  sizeof kMostWorkspace) == 0;
  for (int operand = 0; operand < 4; ++operand)
    is_set = is_set && lt.set_preference(preference.get(), CublasLt::kFirstAlignment + operand, &kAlignment,
                                         sizeof kAlignment) == 0;
  CublasLt::Choice choice{};
  int count = 0;
  const bool is_chosen = is_set &&
                         lt.choose(library, described.product.get(), described.weight.get(),
                                   described.rows.get(), described.residual.get(), described.result.get(),
                                   preference.get(), 1, &choice, &count) == 0 &&
                         count > 0 && choice.state == 0;
  return is_chosen ? std::optional(choice) : std::nullopt;
}

// The library's choice is asked for once.
std::optional<CublasLt::Choice> chosen(const CublasLt& lt, CublasLt::Handle library, const Problem& problem,
                                       const Described& described) {
  static std::mutex mutex;
  static std::map<Problem, std::optional<CublasLt::Choice>> known;
  {
    const std::scoped_lock lock(mutex);
    if (const auto found = known.find(problem); found != known.end()) return found->second;
  }
  const std::optional<CublasLt::Choice> choice = chosen_now(lt, library, described);
  log(Channel::Timing, "cuBLASLt {} {} x {} x {} with a residual", choice ? "computes" : "refuses",
      problem.result.columns, problem.weight.is_transposed ? problem.weight.rows : problem.weight.columns,
      problem.result.rows);
  const std::scoped_lock lock(mutex);
  if (known.size() >= kMostKnown) known.clear();
  return known.try_emplace(problem, choice).first->second;
}

// False: nothing was done.
bool multiply(const CublasLt& lt, const Operands& operands, at::Tensor& result) {
  if (!has_usual_settings(result.scalar_type())) return false;
  const std::optional<Problem> problem = problem_of(operands, result);
  if (!problem) return false;
  const c10::DeviceGuard guard(result.device());
  const CublasLt::Handle library = library_of(lt, problem->device);
  const void* const bias = operands.bias == nullptr ? nullptr : operands.bias->const_data_ptr();
  Described described(lt);
  if (library == nullptr || !describe(lt, *problem, bias, described)) return false;
  const std::optional<CublasLt::Choice> choice = chosen(lt, library, *problem, described);
  if (!choice) return false;
  const c10::DataPtr workspace =
      choice->workspace_bytes == 0
          ? c10::DataPtr()
          : c10::GetAllocator(c10::DeviceType::CUDA)->allocate(choice->workspace_bytes);
  void* const stream =
      c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(result.device()).native_handle();
  constexpr float kOne = 1;
  return lt.multiply(library, described.product.get(), &kOne, operands.mat2.const_data_ptr(),
                     described.weight.get(), operands.mat1.const_data_ptr(), described.rows.get(), &kOne,
                     operands.residual.const_data_ptr(), described.residual.get(), result.mutable_data_ptr(),
                     described.result.get(), &choice->algorithm, workspace.get(), choice->workspace_bytes,
                     stream) == 0;
}

void compute(const Operands& operands, at::Tensor& result) {
  if (operands.bias != nullptr)
    at::addmm_out(result, *operands.bias, operands.mat1, operands.mat2);
  else
    at::mm_out(result, operands.mat1, operands.mat2);
  at::add_out(result, result, operands.residual);
}

}  // namespace

Invoke prepare_residual_product(const CallSite& site) {
  const CublasLt* const lt = find_cublas_lt();
  const ResultSlot where = site.results.at(0);
  if (lt == nullptr || where.slot == kNoSlot) return {};
  const std::array<Slot, 4> slots = {site.tensor(0), site.tensor(1), site.tensor(2), site.tensor(3)};
  const TensorSpec* const spec = &site.spec(where.slot);
  return [lt, where, slots, spec](at::Tensor* tensors) {
    const auto tensor = [&](size_t argument) -> const at::Tensor& {
      return tensors[static_cast<size_t>(slots[argument])];
    };
    at::Tensor& result = tensors[static_cast<size_t>(where.slot)];
    const Operands operands{tensor(0), tensor(2), tensor(3), slots[1] == kNoSlot ? nullptr : &tensor(1)};
    if (!where.planned) result = empty_tensor(*spec, operands.mat1.device());
    if (!multiply(*lt, operands, result)) compute(operands, result);
  };
}

}  // namespace oxy::runtime
