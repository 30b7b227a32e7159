#include "backend/cuda/print/kernel_printer.h"

#include <algorithm>
#include <cctype>

#include "backend/cuda/accesses.h"
#include "backend/cuda/print/phase_printer.h"
#include "backend/nests/long_formulas.h"
#include "base/error.h"
#include "base/hash.h"

namespace oxy::backend::cuda {

namespace {

constexpr std::string_view kNamePlaceholder = "oxy_kernel_name";
constexpr size_t kLongestComment = 110;
constexpr size_t kLongestTitle = 40;

// float32 that nobody sees at its full precision need not be divided exactly.
bool is_precise(const LoopNest& nest) {
  bool any_half = false;
  for (const Array& array : nest.arrays) {
    if (array.kind != ArrayKind::Parameter || !array.is_written || !is_floating(array.dtype)) continue;
    if (held_dtype(array.dtype) == array.dtype) return true;
    any_half = true;
  }
  return !any_half;
}

// "add, gelu, gelu" with each operator once.
std::vector<std::string> operators_of(const std::string& comment) {
  std::vector<std::string> operators;
  for (size_t at = 0; at < comment.size();) {
    const size_t end = std::min(comment.find(", ", at), comment.size());
    std::string name = comment.substr(at, end - at);
    if (std::ranges::find(operators, name) == operators.end()) operators.push_back(std::move(name));
    at = end + 2;
  }
  return operators;
}

// The operators as part of a name: "add_gelu".
std::string title(const std::vector<std::string>& operators) {
  std::string out;
  for (const std::string& name : operators) {
    std::string word;
    for (const char c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) || (c == '_' && !word.empty()))
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (out.size() + word.size() > kLongestTitle) break;
    out += (out.empty() || word.empty() ? "" : "_") + word;
  }
  return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "kernel" + out : out;
}

class KernelPrinter {
 public:
  KernelPrinter(LoopNest nest, const LaunchShape& shape, EarlyStart early_start)
      : nest_(std::move(nest)),
        operators_(operators_of(nest_.comment)),
        shape_(shape),
        early_start_(early_start),
        axes_(make_axes(nest_, shape_)),
        block_(nest_, shape_, axes_) {}

  // With an early start, the next kernel of the stream may start once all programs of this one have started.
  // Each kernel waits for the one before it, so that whoever waits for a kernel waits for all before it. What
  // nothing writes while the plan runs is loaded before that.
  KernelText print() {
    print_arguments();
    PhasePrinter phases(nest_, shape_, axes_, block_, arrays_, is_precise(nest_));
    const bool loads_before_wait = early_start_ == EarlyStart::Yes && shape_.part == 0 && is_one_wave();
    if (early_start_ == EarlyStart::Yes) block_.out().line("gdc_launch_dependents()");
    if (loads_before_wait) {
      block_.print_axes();
      phases.print_loads_before_wait();
    }
    if (early_start_ == EarlyStart::Yes) block_.out().line("gdc_wait()");
    if (!loads_before_wait) block_.print_axes();
    for (size_t p = 0; p < nest_.phases.size(); ++p) phases.print(p);
    if (shape_.part > 0) {
      block_.close_rows();
      phases.store_sums();
    }

    std::vector<std::string> arguments;
    for (const auto& [name, type] : signature_) arguments.push_back(name);
    for (const auto& [name, value] : constants_) arguments.push_back(name + ": tl.constexpr");
    std::string body = helpers_text(block_.needs);
    body += fmt::format("\n\n@triton.jit\ndef {}({}):\n{}", kNamePlaceholder, fmt::join(arguments, ", "),
                        block_.text());
    body += "\n\n" + launch_text(phases.checks_indices());

    KernelText text;
    text.name = title(operators_) + "_" + to_hex(hash128(body)).substr(0, 8);
    for (size_t at = 0; (at = body.find(kNamePlaceholder, at)) != std::string::npos;)
      body.replace(at, kNamePlaceholder.size(), text.name);
    text.source = comment() + "import triton\nimport triton.language as tl\n";
    if (block_.needs.libdevice) text.source += "from triton.language.extra import libdevice\n";
    if (early_start_ == EarlyStart::Yes)
      text.source += "from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait\n";
    text.source += body;
    text.parameters = std::move(parameters_);
    text.symbols = nest_.symbols;
    text.programs = with_formulas(nest_, axes_.programs);
    return text;
  }

 private:
  // Whether the device runs all programs at once. With more of them, early loads would compete with the
  // kernel before, and most programs start after it has ended.
  bool is_one_wave() const {
    return estimate(with_formulas(nest_, axes_.programs)) * shape_.warps * kThreadsAWarp <= kThreads;
  }

  std::string comment() const {
    std::string names;
    for (const std::string& name : operators_) names += (names.empty() ? "" : ", ") + name;
    if (names.empty()) return "";
    const bool is_long = names.size() > kLongestComment;
    return "# " + names.substr(0, kLongestComment) + (is_long ? " ...\n" : "\n");
  }

  void print_arguments() {
    arrays_.resize(nest_.arrays.size());
    int inputs = 0, outputs = 0, both = 0;
    for (const ArrayId k : nest_.arrays.ids()) {
      const Array& array = nest_.arrays[k];
      if (array.kind != ArrayKind::Parameter || (!array.is_read && !array.is_written)) continue;
      std::string& name = arrays_[k].name;
      if (array.is_read && array.is_written)
        name = fmt::format("io{}", both++);
      else
        name = array.is_read ? fmt::format("in{}", inputs++) : fmt::format("out{}", outputs++);
      signature_.emplace_back(name, pointer_type(array.dtype));
      parameters_.push_back(k);
    }
    for (size_t k = 0; k < nest_.symbols.size(); ++k) {
      const std::string name = fmt::format("n{}", k);
      signature_.emplace_back(name, fits_int32(nest_.symbols[k].variable) ? "i32" : "i64");
      block_.set_variable(nest_.symbols[k].variable, name, kNoDims);
    }
    if (block_.has_rows()) constants_.emplace_back("ROWS", shape_.rows);
    for (size_t k = 0; k < axes_.columns.size(); ++k)
      constants_.emplace_back(k == 0 ? "COLUMNS" : fmt::format("COLUMNS{}", k + 1), axes_.columns[k].block);
  }

  std::string launch_text(bool checks_indices) const {
    std::string signature, constants;
    for (const auto& [name, type] : signature_)
      signature += fmt::format("{}\"{}\": \"{}\"", signature.empty() ? "" : ", ", name, type);
    for (const auto& [name, value] : constants_)
      constants += fmt::format("{}\"{}\": {}", constants.empty() ? "" : ", ", name, value);
    std::string options = fmt::format("\"num_warps\": {}", shape_.warps);
    if (checks_indices) options += ", \"debug\": True, \"sanitize_overflow\": False";
    return fmt::format(
        "{}_launch = {{\n    \"signature\": {{{}}},\n    \"constants\": {{{}}},\n    \"options\": "
        "{{{}}},\n}}\n",
        kNamePlaceholder, signature, constants, options);
  }

  LoopNest nest_;
  std::vector<std::string> operators_;
  LaunchShape shape_;
  EarlyStart early_start_;
  Axes axes_;
  BlockPrinter block_;
  IdVector<ArrayId, ArrayState> arrays_;
  std::vector<std::pair<std::string, std::string>> signature_;  // name, type
  std::vector<std::pair<std::string, int64_t>> constants_;
  std::vector<ArrayId> parameters_;
};

}  // namespace

KernelText print_kernel(LoopNest nest, const LaunchShape& shape, EarlyStart early_start) {
  name_long_formulas(nest);
  return KernelPrinter(std::move(nest), shape, early_start).print();
}

}  // namespace oxy::backend::cuda
