// The text form of loop programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "loop/builder.h"
#include "loop/program.h"

namespace oxy::loop {

namespace {

std::string list(const std::vector<Expr>& expressions) {
  std::string out;
  for (const Expr& e : expressions) out += (out.empty() ? "" : ", ") + e.str();
  return "[" + out + "]";
}

std::string_view reduction_name(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::None:
      return "none";
    case ReductionKind::Sum:
      return "sum";
    case ReductionKind::Prod:
      return "prod";
    case ReductionKind::Max:
      return "max";
    case ReductionKind::Min:
      return "min";
    case ReductionKind::Any:
      return "any";
    case ReductionKind::All:
      return "all";
    case ReductionKind::ArgMax:
      return "argmax";
    case ReductionKind::ArgMin:
      return "argmin";
    case ReductionKind::Welford:
      return "welford";
    case ReductionKind::OnlineSoftmax:
      return "online_softmax";
    case ReductionKind::RunningSum:
      return "running_sum";
    case ReductionKind::RunningProd:
      return "running_prod";
    case ReductionKind::RunningLogSumExp:
      return "running_log_sum_exp";
  }
  return "?";
}

std::string buffer_name(const Program& program, BufferId id) {
  if (!program.buffers.contains(id)) return id == kNoBuffer ? "none" : "?";
  return program.buffers[id].name;
}

std::string buffer_text(const Buffer& buffer) {
  std::string out = fmt::format("{}: {}{}", buffer.name, name(buffer.dtype), list(buffer.sizes));
  if (buffer.kind == BufferKind::Input) out += fmt::format(" input {}", buffer.source);
  if (buffer.kind == BufferKind::Constant) out += fmt::format(" constant {}", buffer.source);
  if (buffer.strides && *buffer.strides != contiguous_strides(buffer.sizes))
    out += " strides " + list(*buffer.strides);
  if (buffer.strides && buffer.kind == BufferKind::Intermediate) out += " fixed";
  if (!(buffer.offset == Expr(0))) out += " offset " + buffer.offset.str();
  return out;
}

std::string scalar_text(const Scalar& scalar) {
  return std::visit([](auto v) { return fmt::format("{}", v); }, scalar.value);
}

std::string inst_text(const Program& program, const Body& body, InstId id) {
  const Inst& inst = body.insts[id];
  std::string out = fmt::format("%{} = {} {}", id, name(inst.dtype), op_name(inst.op));
  auto index = [&] { return list(body.indices.at(inst.index)); };
  switch (inst.op) {
    case Op::Load:
      out += fmt::format(" {}{}", buffer_name(program, inst.buffer), index());
      if (inst.operands[0] != kNoInst)
        out += fmt::format(" if %{} else %{}", inst.operands[0], inst.operands[1]);
      return out;
    case Op::Constant:
      return out + " " + scalar_text(inst.constant);
    case Op::Index:
      return out + " " + body.indices.at(inst.index).at(0).str();
    case Op::BindIndex:
      return fmt::format("t{} = bind %{} in {}{}{}", inst.variable % (1 << 20), inst.operands[0], index(),
                         inst.wraps ? "" : " unwrapped", inst.checked ? "" : " unchecked");
    default:
      break;
  }
  for (int k = 0; k < operand_count(inst.op); ++k)
    out += fmt::format("{} %{}", k == 0 ? "" : ",", inst.operands[static_cast<size_t>(k)]);
  return out;
}

std::string loops_text(const std::vector<LoopVariable>& loops) {
  std::string out;
  for (const LoopVariable& loop : loops)
    out += fmt::format("{}{} in {}", out.empty() ? "" : ", ", loop.variable.str(), loop.extent.str());
  return out;
}

void print_computation(std::string& out, const Program& program, const Computation& c) {
  out += fmt::format("for {}", c.loops.empty() ? "one" : loops_text(c.loops));
  if (!c.origin.empty()) out += fmt::format("  # {}", c.origin);
  if (program.locations.contains(c.location))
    out += fmt::format("{} {}", c.origin.empty() ? "  #" : " at", program.locations[c.location]);
  out += "\n";
  std::string indent = "  ";
  if (c.kind != ReductionKind::None) {
    out += fmt::format("  {} in {} over {}\n", reduction_name(c.kind), name(c.accumulate),
                       loops_text(c.reduction));
    indent = "    ";
  }
  for (const InstId id : c.body.insts.ids())
    out += fmt::format("{}{}\n", indent, inst_text(program, c.body, id));
  if (c.kind != ReductionKind::None)
    out += fmt::format("    reduce %{}{}\n", c.reduced,
                       c.counted ? fmt::format(", the first {}", c.counted->str()) : "");
  for (const Store& store : c.stores)
    out += fmt::format("  {}{} {} {}\n", buffer_name(program, store.buffer), list(store.index),
                       store.mode == StoreMode::Set         ? "="
                       : store.mode == StoreMode::AtomicAdd ? "+="
                                                            : "+= in parts",
                       c.kind == ReductionKind::None ? fmt::format("%{}", store.value)
                                                     : fmt::format("result {}", store.result));
}

std::string view_text(const Program& program, const BufferView& view) {
  std::string out = buffer_name(program, view.buffer);
  const Buffer& buffer = program.buffers.at(view.buffer);
  bool whole = view.sizes == buffer.sizes && buffer.strides && view.strides == *buffer.strides;
  if (!whole) out += fmt::format("{} strides {}", list(view.sizes), list(view.strides));
  if (!(view.offset == Expr(0))) out += fmt::format(" offset {}", view.offset.str());
  return out;
}

struct ArgumentText {
  const Program& program;
  std::string operator()(const graph::None&) const { return "None"; }
  std::string operator()(const BufferView& view) const { return view_text(program, view); }
  std::string operator()(const std::vector<std::optional<BufferView>>& views) const {
    std::string out;
    for (const auto& view : views)
      out += (out.empty() ? "" : ", ") + (view ? view_text(program, *view) : "None");
    return "(" + out + ")";
  }
  std::string operator()(bool b) const { return b ? "True" : "False"; }
  std::string operator()(const Expr& e) const { return e.str(); }
  std::string operator()(double d) const { return fmt::format("{:#}", d); }
  std::string operator()(const std::complex<double>& c) const {
    return fmt::format("{}+{}j", c.real(), c.imag());
  }
  std::string operator()(const std::string& s) const { return fmt::format("\"{}\"", s); }
  std::string operator()(DType dtype) const { return std::string(name(dtype)); }
  std::string operator()(Device device) const { return str(device); }
  std::string operator()(MemoryFormat format) const {
    return fmt::format("format{}", static_cast<int>(format));
  }
  std::string operator()(const std::vector<bool>& v) const { return fmt::format("{}", v); }
  std::string operator()(const std::vector<Expr>& v) const { return list(v); }
  std::string operator()(const std::vector<double>& v) const { return fmt::format("{}", v); }
};

void print_call(std::string& out, const Program& program, const ExternCall& call) {
  std::string outputs;
  for (BufferId id : call.outputs) outputs += (outputs.empty() ? "" : ", ") + buffer_name(program, id);
  std::string args;
  for (const ExternArgument& argument : call.args)
    args += (args.empty() ? "" : ", ") + std::visit(ArgumentText{program}, argument);
  out +=
      fmt::format("{}{}{}({})\n", outputs, outputs.empty() ? "" : " = ", call.op ? call.op->name : "?", args);
}

}  // namespace

std::string print(const Program& program) {
  std::string out;
  for (const Buffer& buffer : program.buffers) out += buffer_text(buffer) + "\n";
  for (const Step& step : program.steps) {
    if (const auto* c = std::get_if<Computation>(&step))
      print_computation(out, program, *c);
    else
      print_call(out, program, std::get<ExternCall>(step));
  }
  for (const ProgramOutput& output : program.outputs) {
    if (output.view.buffer == kNoBuffer) {
      out += "return None\n";
      continue;
    }
    out += "return " + view_text(program, output.view);
    if (output.kind == graph::OutputKind::InputAlias) out += fmt::format(" alias of input {}", output.alias);
    if (output.kind == graph::OutputKind::OutputAlias)
      out += fmt::format(" alias of output {}", output.alias);
    out += "\n";
  }
  for (const ProgramMutation& mutation : program.mutations)
    out += fmt::format("input {} := {}\n", mutation.input, view_text(program, mutation.value));
  return out;
}

}  // namespace oxy::loop
