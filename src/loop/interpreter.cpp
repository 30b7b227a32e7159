#include "loop/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "loop/builder.h"
#include "loop/number.h"
#include "loop/random_bits.h"

namespace oxy::loop {

namespace {

template <class T>
bool compared(Op op, T a, T b) {
  switch (op) {
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    default:
      return a >= b;
  }
}

// A buffer's memory by physical position.
struct Memory {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<Number> elements;
};

// Calls fn(index) for every index below the sizes, the last one moving fastest.
void for_each_index(const std::vector<int64_t>& sizes,
                    const std::function<void(const std::vector<int64_t>&)>& fn) {
  std::vector<int64_t> index(sizes.size());
  for (int64_t size : sizes)
    if (size == 0) return;
  while (true) {
    fn(index);
    size_t k = sizes.size();
    while (k > 0 && ++index[k - 1] == sizes[k - 1]) index[--k] = 0;
    if (k == 0) return;
  }
}

struct Reducer {
  ReductionKind kind;
  DType dtype;  // of the elements
  int64_t count = 0;
  double first = 0, second = 0;
  int64_t integer = 0;
  int64_t position = 0;

  void add(Number n) {
    double x = is_floating(dtype) ? n.f : static_cast<double>(n.i);
    bool start = count++ == 0;
    switch (kind) {
      case ReductionKind::Sum:
      case ReductionKind::RunningSum:
        first += x;
        integer += n.i;
        return;
      case ReductionKind::Prod:
      case ReductionKind::RunningProd:
        first = start ? x : first * x;
        integer = start ? n.i : integer * n.i;
        return;
      case ReductionKind::Any:
        integer |= n.i != 0;
        return;
      case ReductionKind::All:
        integer = start ? n.i != 0 : integer & static_cast<int64_t>(n.i != 0);
        return;
      case ReductionKind::Max:
      case ReductionKind::Min:
      case ReductionKind::ArgMax:
      case ReductionKind::ArgMin: {
        bool max = kind == ReductionKind::Max || kind == ReductionKind::ArgMax;
        bool better = max ? x > first : x < first;
        if (!is_floating(dtype)) better = max ? n.i > integer : n.i < integer;
        if (start || better || (std::isnan(x) && !std::isnan(first))) {
          first = x;
          integer = n.i;
          position = count - 1;
        }
        return;
      }
      case ReductionKind::Welford: {
        double delta = x - first;
        first += delta / static_cast<double>(count);
        second += delta * (x - first);
        return;
      }
      case ReductionKind::OnlineSoftmax: {
        double previous = start ? -INFINITY : first;
        double maximum = std::isnan(x) || std::isnan(previous) ? NAN : std::max(previous, x);
        // Nothing but -inf so far: no term counts yet (softmax of such a row is then 0 / 0, as in eager).
        double scale = previous == maximum ? 1 : std::exp(previous - maximum);
        second = maximum == -INFINITY ? 0 : second * scale + std::exp(x - maximum);
        first = maximum;
        return;
      }
      case ReductionKind::RunningLogSumExp: {
        const double gap = first == x ? 0 : std::abs(first - x);  // infinities may be equal
        const double top = std::isnan(x) || std::isnan(first) ? NAN : std::max(first, x);
        first = start ? x : top + std::log1p(std::exp(-gap));
        return;
      }
      case ReductionKind::None:
        return;
    }
  }

  Number result(int which) const {
    if (kind == ReductionKind::ArgMax || kind == ReductionKind::ArgMin) return {0, position};
    if (count == 0 && (kind == ReductionKind::Prod || kind == ReductionKind::All)) return {1, 1};
    if (count == 0 && kind == ReductionKind::OnlineSoftmax && which == 0) return {-INFINITY, 0};
    return {which == 0 ? first : second, integer};
  }
};

class Interpreter {
 public:
  Interpreter(const Program& program, const InterpreterOptions& options)
      : program_(program), options_(options) {}

  InterpreterResult run(const std::vector<Array>& inputs, const std::vector<Array>& constants) {
    for (const Buffer& buffer : program_.buffers) {
      Memory memory;
      memory.sizes = values(buffer.sizes);
      memory.strides = values(buffer.strides ? *buffer.strides : contiguous_strides(buffer.sizes));
      int64_t extent = 1;
      for (size_t k = 0; k < memory.sizes.size(); ++k) extent += (memory.sizes[k] - 1) * memory.strides[k];
      memory.elements.resize(static_cast<size_t>(std::max<int64_t>(extent, 1)));
      if (buffer.kind != BufferKind::Intermediate) {
        const auto& arrays = buffer.kind == BufferKind::Input ? inputs : constants;
        check(static_cast<size_t>(buffer.source) < arrays.size(),
              "the program has more inputs than are given");
        fill(memory, buffer, arrays[static_cast<size_t>(buffer.source)]);
      }
      memory_.add(std::move(memory));
    }
    for (const Step& step : program_.steps) {
      if (const auto* c = std::get_if<Computation>(&step))
        compute(*c);
      else
        call(std::get<ExternCall>(step));
    }
    InterpreterResult result;
    for (const ProgramOutput& output : program_.outputs)
      result.outputs.push_back(output.view.buffer == kNoBuffer ? Array{} : read(output.view));
    for (const ProgramMutation& mutation : program_.mutations)
      result.mutations.push_back(read(mutation.value));
    return result;
  }

 private:
  int64_t value(const Expr& e) const {
    return sym::evaluate(e, [&](int64_t id) -> std::optional<int64_t> {
      if (auto found = variables_.find(id); found != variables_.end()) return found->second;
      return options_.symbol(id);
    });
  }

  std::vector<int64_t> values(const std::vector<Expr>& expressions) const {
    std::vector<int64_t> out;
    for (const Expr& e : expressions) out.push_back(value(e));
    return out;
  }

  static void fill(Memory& memory, const Buffer& buffer, const Array& array) {
    check(array.dtype == buffer.dtype && array.sizes == memory.sizes,
          buffer.name + " is given another array");
    size_t next = 0;
    for_each_index(memory.sizes, [&](const std::vector<int64_t>& index) {
      int64_t position = 0;
      for (size_t k = 0; k < index.size(); ++k) position += index[k] * memory.strides[k];
      Number n = is_floating(array.dtype) ? Number{array.floats.at(next), 0} : Number{0, array.ints.at(next)};
      memory.elements[static_cast<size_t>(position)] = rounded(n, array.dtype);
      ++next;
    });
  }

  Number& element(BufferId id, const std::vector<Expr>& index) {
    Memory& memory = memory_[id];
    int64_t position = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      int64_t i = value(index[k]);
      check(i >= 0 && i < memory.sizes[k],
            fmt::format("index {} = {} leaves dimension {} of {}, size {}", index[k].str(), i, k,
                        program_.buffers[id].name, memory.sizes[k]));
      position += i * memory.strides[k];
    }
    return memory.elements[static_cast<size_t>(position)];
  }

  Number run_inst(const Body& body, const Inst& inst, const IdVector<InstId, Number>& results) {
    auto operand = [&](size_t k) { return results[inst.operands[k]]; };
    auto operand_dtype = [&](size_t k) { return body.insts[inst.operands[k]].dtype; };
    auto index = [&]() -> const std::vector<Expr>& { return body.indices[inst.index]; };
    switch (inst.op) {
      case Op::Load:
        if (inst.operands[0] != kNoInst && operand(0).i == 0) return operand(1);
        return element(inst.buffer, index());
      case Op::Constant: {
        Number n = std::visit([](auto v) { return Number{static_cast<double>(v), 0}; }, inst.constant.value);
        if (const auto* i = std::get_if<int64_t>(&inst.constant.value))
          return converted({0, *i}, DType::Int64, inst.dtype);
        return converted(n, DType::Float64, inst.dtype);
      }
      case Op::Index:
        return rounded({0, value(index()[0])}, inst.dtype);
      case Op::Cast:
        return converted(operand(0), operand_dtype(0), inst.dtype);
      case Op::Bitcast:
        return bitcast(operand(0), operand_dtype(0), inst.dtype);
      case Op::IsNan:
        return {0, std::isnan(operand(0).f)};
      case Op::IsInf:
        return {0, std::isinf(operand(0).f)};
      case Op::Where:
        return operand(0).i != 0 ? operand(1) : operand(2);
      case Op::Fma:
        return rounded(
            {std::fma(operand(0).f, operand(1).f, operand(2).f), operand(0).i * operand(1).i + operand(2).i},
            inst.dtype);
      case Op::Philox:
        return {philox_uniform(operand(0).i, operand(1).i, operand(2).i), 0};
      case Op::BindIndex: {
        int64_t size = value(index()[0]);
        int64_t i = operand(0).i;
        if (inst.wraps && i < 0) i += size;
        if (inst.checked && (i < 0 || i >= size)) throw UserError("index out of range");
        variables_[inst.variable] = i;
        return {0, i};
      }
      default:
        break;
    }
    bool floating = is_floating(operand_dtype(0));
    if (operand_count(inst.op) == 1)
      return rounded(floating ? Number{unary(inst.op, operand(0).f), 0}
                              : Number{0, unary(inst.op, operand(0).i, operand_dtype(0))},
                     inst.dtype);
    if (is_comparison(inst.op))
      return {0, floating ? compared(inst.op, operand(0).f, operand(1).f)
                          : compared(inst.op, operand(0).i, operand(1).i)};
    return rounded(floating ? Number{binary(inst.op, operand(0).f, operand(1).f), 0}
                            : Number{0, binary(inst.op, operand(0).i, operand(1).i)},
                   inst.dtype);
  }

  static Number bitcast(Number n, DType from, DType to) {
    uint64_t bits = from == DType::Float32   ? std::bit_cast<uint32_t>(static_cast<float>(n.f))
                    : from == DType::Float64 ? std::bit_cast<uint64_t>(n.f)
                                             : static_cast<uint64_t>(n.i);
    if (to == DType::Float32) return {std::bit_cast<float>(static_cast<uint32_t>(bits)), 0};
    if (to == DType::Float64) return {std::bit_cast<double>(bits), 0};
    return rounded({0, static_cast<int64_t>(bits)}, to);
  }

  IdVector<InstId, Number> run_body(const Body& body) {
    IdVector<InstId, Number> results;
    results.reserve(body.insts.size());
    for (const Inst& inst : body.insts) results.add(run_inst(body, inst, results));
    return results;
  }

  void loop(const std::vector<LoopVariable>& loops, const std::function<void()>& fn) {
    std::vector<int64_t> extents;
    for (const LoopVariable& v : loops) extents.push_back(value(v.extent));
    for_each_index(extents, [&](const std::vector<int64_t>& index) {
      for (size_t k = 0; k < loops.size(); ++k) variables_[loops[k].variable.variable_id()] = index[k];
      fn();
    });
  }

  // The row of the buffer in which the iteration at hand is added up.
  int64_t part_of(const Computation& c, const Store& store) const {
    int64_t row = 0;
    for (const LoopVariable& l : c.loops) {
      const int64_t id = l.variable.variable_id();
      const bool is_named = std::ranges::any_of(store.index, [&](const Expr& e) {
        return std::ranges::any_of(sym::variables(e), [&](const Expr& v) { return v.variable_id() == id; });
      });
      if (!is_named) row = row * value(l.extent) + variables_.at(id);
    }
    return row / store.part.rows;
  }

  void write(const Computation& c, const Store& store, Number n, DType from) {
    DType dtype = program_.buffers[store.buffer].dtype;
    n = converted(n, from, dtype);
    std::vector<Expr> index = store.index;
    if (store.mode == StoreMode::AddInParts) index[0] = part_of(c, store);
    Number& target = element(store.buffer, index);
    target = store.mode == StoreMode::Set ? n : rounded({target.f + n.f, target.i + n.i}, dtype);
  }

  void compute(const Computation& c) {
    loop(c.loops, [&] {
      if (c.kind == ReductionKind::None) {
        const IdVector<InstId, Number> results = run_body(c.body);
        for (const Store& store : c.stores)
          write(c, store, results[store.value], c.body.insts[store.value].dtype);
        return;
      }
      DType dtype = c.body.insts[c.reduced].dtype;
      Reducer reducer{c.kind, dtype};
      const int64_t counted = c.counted ? value(*c.counted) : std::numeric_limits<int64_t>::max();
      int64_t position = 0;
      bool counts = c.kind == ReductionKind::ArgMax || c.kind == ReductionKind::ArgMin ||
                    c.kind == ReductionKind::Any || c.kind == ReductionKind::All;
      const auto store_results = [&] {
        for (const Store& store : c.stores)
          write(c, store, reducer.result(store.result), counts ? DType::Int64 : dtype);
      };
      loop(c.reduction, [&] {
        if (position++ < counted) reducer.add(run_body(c.body)[c.reduced]);
        if (is_scan(c.kind)) store_results();
      });
      if (!is_scan(c.kind)) store_results();
    });
  }

  Array read(const BufferView& view) {
    const Memory& memory = memory_[view.buffer];
    Array array{program_.buffers[view.buffer].dtype, values(view.sizes), {}, {}};
    std::vector<int64_t> strides = values(view.strides);
    int64_t offset = value(view.offset);
    for_each_index(array.sizes, [&](const std::vector<int64_t>& index) {
      int64_t position = offset;
      for (size_t k = 0; k < index.size(); ++k) position += index[k] * strides[k];
      const Number& n = memory.elements.at(static_cast<size_t>(position));
      if (is_floating(array.dtype))
        array.floats.push_back(n.f);
      else
        array.ints.push_back(n.i);
    });
    return array;
  }

  void call(const ExternCall& c) {
    check(options_.call != nullptr,
          "the program calls " + c.op->name + ", which the interpreter was not given");
    std::vector<Array> args;
    for (const ExternArgument& argument : c.args) {
      if (const auto* view = std::get_if<BufferView>(&argument)) args.push_back(read(*view));
      if (const auto* list = std::get_if<std::vector<std::optional<BufferView>>>(&argument))
        for (const auto& view : *list)
          if (view) args.push_back(read(*view));
    }
    std::vector<Array> results = options_.call(c, args);
    check(results.size() == c.outputs.size(), "an extern call gave another number of results");
    for (size_t k = 0; k < results.size(); ++k)
      if (c.outputs[k] != kNoBuffer) fill(memory_[c.outputs[k]], program_.buffers[c.outputs[k]], results[k]);
  }

  const Program& program_;
  const InterpreterOptions& options_;
  IdVector<BufferId, Memory> memory_;
  std::unordered_map<int64_t, int64_t> variables_;
};

}  // namespace

InterpreterResult interpret(const Program& program, const std::vector<Array>& inputs,
                            const std::vector<Array>& constants, const InterpreterOptions& options) {
  return Interpreter(program, options).run(inputs, constants);
}

}  // namespace oxy::loop
