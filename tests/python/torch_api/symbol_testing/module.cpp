// The extension module oxyfuel_symbol_testing: tensors of PyTorch's meta device whose sizes are symbols.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>

#include "sym/environment/guard_program.h"
#include "torch_api/symbolic_node.h"

namespace nb = nanobind;
using namespace oxy;
using sym::Expr;

namespace {

const at::Tensor& tensor_of(nb::handle object) {
  if (!THPVariable_Check(object.ptr())) throw nb::type_error("a tensor is expected");
  return THPVariable_Unpack(object.ptr());
}

struct Environment {
  torch_api::SymbolsPointer symbols = std::make_shared<torch_api::Symbols>();
  std::shared_ptr<std::string> line = std::make_shared<std::string>();

  Environment() {
    symbols->where = [line = line] { return *line; };
  }
  sym::ShapeEnvironment& environment() const { return symbols->environment; }

  // A contiguous tensor: of each negative number the dimension is a symbol with that value at hand.
  nb::object tensor(const std::string& name, const std::vector<int64_t>& sizes, bool with_data) {
    std::vector<c10::SymInt> list;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const std::string place = name + ".size(" + std::to_string(d) + ")";
      Expr size = sizes[d];
      if (sizes[d] < 0 && with_data)
        size = environment().admit(sym::SymbolKind::Size, {.name = place}, -sizes[d] - 1);
      else if (sizes[d] < 0)
        size = environment().data_dependent({.name = place}, {0, sym::kMaxInt});
      list.push_back(torch_api::to_torch(symbols, size));
    }
    return nb::steal(THPVariable_Wrap(
        at::empty_symint(list, at::TensorOptions().device(c10::kMeta).dtype(c10::kFloat), std::nullopt)));
  }

  std::vector<int64_t> evaluated(c10::SymIntArrayRef list, const std::vector<int64_t>& values) const {
    std::vector<int64_t> result;
    for (const c10::SymInt& value : list)
      result.push_back(sym::evaluate(torch_api::expression_of(value), [&](int64_t id) {
        return std::optional<int64_t>(values.at(static_cast<size_t>(id)));
      }));
    return result;
  }

  bool holds(const std::vector<int64_t>& values) const {
    const sym::GuardProgram program(environment());
    std::vector<int64_t> inputs;
    for (const sym::SymbolId id : program.inputs()) inputs.push_back(values.at(static_cast<size_t>(id)));
    std::vector<int64_t> work(program.program().slots());
    return program.program().run(inputs, work).status == sym::RunStatus::Holds;
  }
};

}  // namespace

NB_MODULE(oxyfuel_symbol_testing, m) {
  nb::class_<Environment>(m, "Environment")
      .def(nb::init<>())
      .def("at_line", [](const Environment& self, std::string line) { *self.line = std::move(line); })
      .def("tensor", &Environment::tensor, nb::arg("name"), nb::arg("sizes"), nb::arg("with_data") = true)
      .def("sizes",
           [](const Environment& self, nb::handle tensor, const std::vector<int64_t>& values) {
             return self.evaluated(tensor_of(tensor).sym_sizes(), values);
           })
      .def("strides",
           [](const Environment& self, nb::handle tensor, const std::vector<int64_t>& values) {
             return self.evaluated(tensor_of(tensor).sym_strides(), values);
           })
      .def("offset",
           [](const Environment& self, nb::handle tensor, const std::vector<int64_t>& values) {
             const c10::SymInt offset = tensor_of(tensor).sym_storage_offset();
             return self.evaluated({&offset, 1}, values)[0];
           })
      .def("size_texts",
           [](const Environment& self, nb::handle tensor) {
             std::vector<std::string> texts;
             for (const c10::SymInt& size : tensor_of(tensor).sym_sizes())
               texts.push_back(self.environment().text(torch_api::expression_of(size)));
             return texts;
           })
      .def("guards",
           [](const Environment& self) {
             const sym::GuardProgram program(self.environment());
             return std::vector<std::string>(program.texts().begin(), program.texts().end());
           })
      .def("assertions",
           [](const Environment& self) {
             std::vector<std::string> texts;
             for (const sym::Assertion& assertion : self.environment().assertions())
               texts.push_back(self.environment().text(assertion.condition));
             return texts;
           })
      // The text of what C++ computes of two sizes.
      .def("compute",
           [](const Environment& self, nb::handle tensor, const std::string& what) {
             const c10::SymInt a = tensor_of(tensor).sym_size(0);
             const c10::SymInt b = tensor_of(tensor).sym_size(1);
             const auto text = [&](const c10::SymInt& e) {
               return self.environment().text(torch_api::expression_of(e));
             };
             if (what == "a + b") return text(a + b);
             if (what == "2 - a") return text(2 - a);
             if (what == "a - a") return text(a - a);
             if (what == "a * b") return text(a * b * 3);
             if (what == "a / 4") return text(a / 4);
             if (what == "a % 4") return text(a % 4);
             if (what == "min") return text(a.min(b));
             if (what == "max") return text(b.max(1));
             if (what == "sqrt")
               return std::to_string(1.0 / c10::SymFloat(a).sqrt().guard_float(__FILE__, __LINE__));
             throw nb::value_error("nothing to compute");
           })
      // What PyTorch writes for a size in a message.
      .def("shown",
           [](const Environment& self, nb::handle tensor, int64_t dimension) {
             return tensor_of(tensor).sym_size(dimension).toSymNode()->str();
           })
      .def("holds", &Environment::holds);

  // Asks of a size what PyTorch's C++ asks, with the macros that it asks with.
  m.def("ask", [](nb::handle tensor, int64_t dimension, int64_t number, const std::string& how) {
    const c10::SymInt size = tensor_of(tensor).sym_size(dimension);
    const c10::SymBool question = size.sym_eq(number);
    if (how == "==") return size == number;
    if (how == "size oblivious") return TORCH_GUARD_SIZE_OBLIVIOUS(question);
    if (how == "or false") return TORCH_GUARD_OR_FALSE(question);
    if (how == "or true") return TORCH_GUARD_OR_TRUE(question);
    if (how == "statically known") return TORCH_STATICALLY_KNOWN_TRUE(question);
    if (how == "expect") return question.expect_true(__FILE__, __LINE__);
    if (how == "has value") return question.has_hint();
    throw nb::value_error("an unknown way to ask");
  });
}
