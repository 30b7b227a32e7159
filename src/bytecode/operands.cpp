#include "bytecode/operands.h"

namespace oxy::bytecode {

std::optional<size_t> operand_count(const Instruction& in) {
  const auto arg = static_cast<size_t>(in.arg);
  switch (in.op) {
    case Op::Nop:
    case Op::PushNull:
    case Op::LoadConst:
    case Op::LoadFast:
    case Op::LoadFastAndClear:
    case Op::DeleteFast:
    case Op::LoadGlobal:
    case Op::DeleteGlobal:
    case Op::LoadClosure:
    case Op::LoadDeref:
    case Op::DeleteDeref:
    case Op::Jump:
    case Op::Resume:
    case Op::ImportFrom:
    case Op::LoadAssertionError:
      return 0;
    case Op::PopTop:
    case Op::StoreFast:
    case Op::StoreGlobal:
    case Op::StoreDeref:
    case Op::LoadAttr:
    case Op::LoadMethod:
    case Op::DeleteAttr:
    case Op::UnaryNegative:
    case Op::UnaryNot:
    case Op::UnaryInvert:
    case Op::UnaryPositive:
    case Op::ToBool:
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop:
    case Op::GetIter:
    case Op::ForIter:
    case Op::UnpackSequence:
    case Op::UnpackEx:
    case Op::ConvertValue:
    case Op::ReturnValue:
      return 1;
    case Op::StoreAttr:
    case Op::BinaryOp:
    case Op::CompareOp:
    case Op::IsOp:
    case Op::ContainsOp:
    case Op::BinarySubscr:
    case Op::DeleteSubscr:
    case Op::ImportName:
      return 2;
    case Op::LoadSuperAttr:
    case Op::LoadSuperMethod:
    case Op::StoreSubscr:
    case Op::BinarySlice:
      return 3;
    case Op::StoreSlice:
      return 4;
    case Op::Copy:
    case Op::Swap:
    case Op::BuildTuple:
    case Op::BuildList:
    case Op::BuildSet:
    case Op::BuildString:
    case Op::BuildSlice:
      return arg;
    case Op::BuildMap:
      return 2 * arg;
    case Op::BuildConstKeyMap:
      return arg + 1;
    case Op::ListAppend:
    case Op::SetAdd:
    case Op::ListExtend:
    case Op::SetUpdate:
    case Op::DictUpdate:
    case Op::DictMerge:
      return arg + 1;
    case Op::FormatValue:
      return in.arg2 ? 2 : 1;
    case Op::Call:
      return arg + (in.arg2 == -2 ? 3 : 2);
    default:
      return std::nullopt;
  }
}

}  // namespace oxy::bytecode
