// The rules of loop programs, one check a rule.
#include <fmt/format.h>

#include <unordered_set>

#include "base/error.h"
#include "loop/builder.h"
#include "loop/program.h"
#include "loop/variables.h"

namespace oxy::loop {

namespace {

struct Verifier {
  const Program& program;
  IdVector<BufferId, bool> written;
  size_t step = 0;

  void require(bool condition, std::string_view rule) const {
    if (!condition) throw InternalError(fmt::format("loop program, step {}: {}", step, rule));
  }

  const Buffer& buffer(BufferId id) const {
    require(program.buffers.contains(id), "a buffer does not exist");
    return program.buffers[id];
  }

  const Buffer& readable(BufferId id) const {
    const Buffer& b = buffer(id);
    require(written[id], fmt::format("{} is read before it is written", b.name));
    return b;
  }

  void bound_variables(const Expr& e, const std::unordered_set<int64_t>& known) const {
    for (const Expr& v : sym::variables(e))
      require(v.variable_id() < kLoopVariables || known.contains(v.variable_id()),
              fmt::format("variable {} is not in scope in {}", v.str(), e.str()));
  }

  void instruction(const Body& body, InstId id, std::unordered_set<int64_t>& known) const {
    const Inst& inst = body.insts[id];
    std::string where = fmt::format("%{} = {}", id, op_name(inst.op));
    auto dtype = [&](size_t k) {
      const InstId operand = inst.operands[k];
      require(operand.is_valid() && operand < id, where + ": an operand does not come before its user");
      return body.insts[operand].dtype;
    };
    auto index = [&]() -> const std::vector<Expr>& {
      require(body.indices.contains(inst.index), where + ": no such index");
      for (const Expr& e : body.indices[inst.index]) bound_variables(e, known);
      return body.indices[inst.index];
    };
    switch (inst.op) {
      case Op::Load: {
        const Buffer& b = readable(inst.buffer);
        require(index().size() == b.sizes.size(), where + ": the index has another rank than the buffer");
        require(inst.dtype == b.dtype, where + ": the type is not the buffer's");
        if (inst.operands[0] != kNoInst)
          require(dtype(0) == DType::Bool && dtype(1) == inst.dtype,
                  where + ": a mask needs a Bool and a value");
        return;
      }
      case Op::Constant:
        return;
      case Op::Index:
        require(index().size() == 1 && is_integral(inst.dtype),
                where + ": one expression of an integer type");
        return;
      case Op::BindIndex:
        require(dtype(0) == DType::Int64 && index().size() == 1, where + ": an Int64 and a size");
        require(inst.variable >= kLoopVariables && known.insert(inst.variable).second,
                where + ": the variable is bound twice");
        return;
      case Op::Cast:
      case Op::Bitcast:
        dtype(0);
        return;
      case Op::IsNan:
      case Op::IsInf:
        require(inst.dtype == DType::Bool && is_floating(dtype(0)), where + ": floating to Bool");
        return;
      case Op::Scan:
        return require(false, where + ": a scan is a computation of its own");
      case Op::Philox:
        require(inst.dtype == DType::Float32 && dtype(0) == DType::Int64 && dtype(1) == DType::Int64 &&
                    dtype(2) == DType::Int64,
                where + ": three Int64 to a Float32");
        return;
      case Op::Where:
        require(dtype(0) == DType::Bool && dtype(1) == inst.dtype && dtype(2) == inst.dtype,
                where + ": a Bool and two values of the result's type");
        return;
      default:
        break;
    }
    DType first = dtype(0);
    for (int k = 1; k < operand_count(inst.op); ++k)
      require(dtype(static_cast<size_t>(k)) == first, where + ": operands of different types");
    require(inst.dtype == (is_comparison(inst.op) ? DType::Bool : first),
            where + ": the result has the wrong type");
  }

  void computation(const Computation& c) {
    std::unordered_set<int64_t> known;
    auto declare = [&](const std::vector<LoopVariable>& loops) {
      for (const LoopVariable& loop : loops) {
        require(loop.variable.kind() == sym::Kind::Variable, "a loop variable is not a variable");
        bound_variables(loop.extent, {});
        require(known.insert(loop.variable.variable_id()).second, "two loops have one variable");
      }
    };
    declare(c.loops);
    std::unordered_set<int64_t> outer = known;
    declare(c.reduction);
    bool reduces = c.kind != ReductionKind::None;
    bool stores_once = reduces && !is_scan(c.kind);  // for all iterations of the reduction loops
    require(reduces != c.reduction.empty(), "reduction loops come with a reduction");
    for (const InstId id : c.body.insts.ids()) instruction(c.body, id, known);
    auto value = [&](InstId id) {
      require(c.body.insts.contains(id), "a value does not exist");
      return c.body.insts[id].dtype;
    };
    if (reduces) value(c.reduced);
    require(!c.counted || c.kind == ReductionKind::Welford, "all elements of a reduction count");
    if (c.counted) bound_variables(*c.counted, outer);
    require(!c.stores.empty(), "a computation stores nothing");
    for (const Store& store : c.stores) {
      const Buffer& b = buffer(store.buffer);
      require(b.kind == BufferKind::Intermediate, "an input or constant is written");
      require(store.index.size() == b.sizes.size(), "a store's index has another rank than the buffer");
      for (const Expr& e : store.index) bound_variables(e, stores_once ? outer : known);
      if (!reduces) require(value(store.value) == b.dtype, "a stored value is not of the buffer's type");
      written[store.buffer] = true;
    }
  }

  void view(const BufferView& v) const {
    const Buffer& b = readable(v.buffer);
    require(b.strides.has_value(), fmt::format("the layout of {}, seen from outside, is not fixed", b.name));
    require(v.sizes.size() == v.strides.size(), "a window has not as many strides as sizes");
  }

  void call(const ExternCall& c) {
    require(c.op != nullptr && c.args.size() == c.op->arguments.size(),
            "a call has not the arguments of its schema");
    for (const ExternArgument& argument : c.args) {
      if (const auto* v = std::get_if<BufferView>(&argument)) view(*v);
      if (const auto* list = std::get_if<std::vector<std::optional<BufferView>>>(&argument))
        for (const auto& v : *list)
          if (v) view(*v);
    }
    for (BufferId id : c.outputs) {
      if (id == kNoBuffer) continue;
      require(buffer(id).kind == BufferKind::Intermediate && buffer(id).strides.has_value(),
              "a call writes a buffer of free layout or an input");
      written[id] = true;
    }
  }
};

}  // namespace

void verify(const Program& program) {
  Verifier verifier{program, IdVector<BufferId, bool>(program.buffers.size()), 0};
  for (const BufferId id : program.buffers.ids()) {
    const Buffer& b = program.buffers[id];
    bool fixed = b.kind != BufferKind::Intermediate;
    verifier.written[id] = fixed;
    verifier.require(!fixed || b.strides.has_value(), "an input's layout is not fixed");
    verifier.require(!b.strides || b.strides->size() == b.sizes.size(),
                     "a layout has another rank than its buffer");
  }
  for (const Step& step : program.steps) {
    if (const auto* c = std::get_if<Computation>(&step))
      verifier.computation(*c);
    else
      verifier.call(std::get<ExternCall>(step));
    ++verifier.step;
  }
  for (const ProgramOutput& output : program.outputs)
    if (output.view.buffer != kNoBuffer) verifier.view(output.view);
  for (const ProgramMutation& mutation : program.mutations) verifier.view(mutation.value);
}

}  // namespace oxy::loop
