#include "bytecode/decode.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "bytecode/line_table.h"
#include "bytecode/table.h"
#include "cpy/code_extra.h"
#include "cpy/exception_table.h"
#include "cpy/ref.h"

namespace oxy::bytecode {
namespace {

// CPython's intrinsic functions of one argument that have an operation of their own.
constexpr Op kIntrinsics1[] = {Op::Unknown,      Op::PrintExpr,     Op::ImportStar, Op::StopIterationError,
                               Op::AsyncGenWrap, Op::UnaryPositive, Op::ListToTuple};
constexpr int kPrepareReraiseStar = 1;  // the one of two arguments
constexpr int kBinaryKinds = 13;

class Decoder {
 public:
  explicit Decoder(PyCodeObject* code) : lines_(line_of_unit(code)) {
    const cpy::Ref bytes = cpy::Ref::steal(PyCode_GetCode(code));
    if (!bytes) {
      PyErr_Clear();
      throw std::bad_alloc();
    }
    units_ = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.get()));
    count_ = int32_t(PyBytes_GET_SIZE(bytes.get()) / 2);
    for (int32_t unit = 0; unit < count_;) unit = decode_at(unit);
    index_offsets();
    resolve_targets();
    for (const cpy::Handler& handler : cpy::exception_table(code))
      result_.exception_table.push_back(
          {handler.begin, handler.end, handler.target, handler.depth, handler.push_last_instruction});
    find_entry();
  }

  Code take() { return std::move(result_); }

 private:
  // Decodes the instruction at `unit` with its prefixes; returns where the next one starts.
  int32_t decode_at(int32_t unit) {
    if (start_ < 0) start_ = unit;
    int32_t operand = 0;
    while (units_[2 * unit] == kExtendedArgument && unit + 1 < count_)
      operand = (operand | units_[2 * unit++ + 1]) << 8;
    const uint8_t opcode = units_[2 * unit];
    operand |= units_[2 * unit + 1];
    const Row& row = kTable[opcode];
    if (row.form == Form::Unknown)
      throw InternalError(fmt::format("opcode {} at {} is not one of this Python version", opcode, unit));
    current_ = {.raw = opcode, .offset = start_, .end = unit + 1 + row.caches, .at = unit};
    if (size_t(unit) < lines_.size()) current_.line = lines_[size_t(unit)];
    const bool folds = add(row, operand);
    if (!folds) start_ = -1;
    return current_.end;
  }

  void emit(Op op, int32_t arg, int32_t arg2 = 0) {
    Instruction instruction = current_;
    instruction.op = op;
    instruction.arg = arg;
    instruction.arg2 = arg2;
    instruction.continues =
        !result_.instructions.empty() && result_.instructions.back().offset == current_.offset;
    result_.instructions.push_back(instruction);
  }

  // Returns true if the instruction belongs to the one that follows.
  bool add(const Row& row, int32_t operand) {
    const int32_t next = current_.end;
    switch (row.form) {
      case Form::Unknown:
        break;
      case Form::Nothing:
        return row.caches != 0;  // PRECALL
      case Form::Plain:
        emit(row.op, operand);
        break;
      case Form::Fixed:
        emit(row.op, row.arg, row.arg2);
        break;
      case Form::Forward:
        emit(row.op, next + operand);
        break;
      case Form::Backward:
        emit(row.op, next - operand, 1);
        break;
      case Form::QuietBackward:
        emit(row.op, next - operand);
        break;
      case Form::ForwardLoop:
        emit(row.op, next + operand + kExhaustedSkip);
        break;
      case Form::BinaryKind:
        emit(row.op, operand % kBinaryKinds, operand >= kBinaryKinds);
        break;
      case Form::CompareLow:
        emit(row.op, operand);
        break;
      case Form::CompareHigh:
        emit(row.op, operand >> 4);
        break;
      case Form::CompareBool:
        emit(row.op, operand >> 5, (operand >> 4) & 1);
        break;
      case Form::GlobalAndNull:
        emit(row.op, operand >> 1, operand & 1);
        break;
      case Form::AttributeOrMethod:
        emit(operand & 1 ? Op::LoadMethod : Op::LoadAttr, operand >> 1);
        break;
      case Form::SuperAttributeOrMethod:
        emit(operand & 1 ? Op::LoadSuperMethod : Op::LoadSuperAttr, operand >> 2, (operand >> 1) & 1);
        break;
      case Form::TwoCounts:
        emit(row.op, operand & 0xFF, operand >> 8);
        break;
      case Form::FormatFlags:
        emit(row.op, operand & 3, (operand >> 2) & 1);
        break;
      case Form::KeywordNames:
        keyword_names_ = operand;
        return true;
      case Form::Call:
        emit(Op::Call, operand, std::exchange(keyword_names_, -1));
        break;
      case Form::CallKeywords:
        emit(Op::Call, operand, -2);
        break;
      case Form::TwoLocals:
        emit(row.op, operand >> 4);
        emit(row.second, operand & 15);
        break;
      case Form::ReturnConstant:
        emit(Op::LoadConst, operand);
        emit(Op::ReturnValue, 0);
        break;
      case Form::Intrinsic1:
        if (size_t(operand) < std::size(kIntrinsics1))
          emit(kIntrinsics1[operand], 0);
        else
          emit(Op::TypeIntrinsic, operand, 1);
        break;
      case Form::Intrinsic2:
        if (operand == kPrepareReraiseStar)
          emit(Op::PrepReraiseStar, 0);
        else
          emit(Op::TypeIntrinsic, operand, 2);
        break;
    }
    return false;
  }

  void index_offsets() {
    std::vector<int32_t>& index = result_.index_of_offset;
    index.assign(size_t(count_) + 1, -1);
    const std::vector<Instruction>& instructions = result_.instructions;
    for (size_t i = instructions.size(); i-- > 0;) index[size_t(instructions[i].offset)] = int32_t(i);
  }

  // A jump may go to a no-op, which has no instruction: it goes to the next one.
  int32_t index_at_or_after(int32_t unit) const {
    while (result_.index_of_offset[size_t(unit)] < 0) {
      ++unit;
      check(unit <= count_, "a jump leaves its code object");
    }
    return result_.index_of_offset[size_t(unit)];
  }

  void resolve_targets() {
    for (Instruction& instruction : result_.instructions) switch (kTable[instruction.raw].form) {
        case Form::Forward:
        case Form::Backward:
        case Form::QuietBackward:
        case Form::ForwardLoop:
          instruction.arg = index_at_or_after(instruction.arg);
          break;
        default:
          break;
      }
  }

  void find_entry() {
    const std::vector<Instruction>& instructions = result_.instructions;
    while (size_t(result_.entry) < instructions.size() &&
           (instructions[size_t(result_.entry)].op == Op::MakeCell ||
            instructions[size_t(result_.entry)].op == Op::CopyFreeVars))
      ++result_.entry;
  }

  const unsigned char* units_ = nullptr;
  int32_t count_ = 0;
  std::vector<int32_t> lines_;
  Code result_;
  Instruction current_;
  int32_t start_ = -1;          // where the group of prefixes being read began
  int32_t keyword_names_ = -1;  // from KW_NAMES
};

using Shared = std::shared_ptr<const Code>;

const cpy::CodeExtra& slot() {
  static const cpy::CodeExtra extra([](void* value) { delete static_cast<Shared*>(value); });
  return extra;
}

}  // namespace

Code decode_uncached(PyCodeObject* code) {
  return Decoder(code).take();
}

std::shared_ptr<const Code> decode(PyCodeObject* code) {
  if (const auto* cached = static_cast<const Shared*>(slot().get(code))) return *cached;
  auto made = std::make_unique<Shared>(std::make_shared<const Code>(decode_uncached(code)));
  Shared result = *made;
  slot().set(code, made.release());
  return result;
}

}  // namespace oxy::bytecode
