// What the results of opaque operators look like: the fake functions that their authors have registered.
#pragma once

#include <span>

#include "cpy/ref.h"
#include "trace/metadata.h"

namespace oxy::trace {

// What torch.library.custom_op() has made of this name; null if it was defined otherwise. Needs the GIL.
cpy::Ref custom_op_object(const std::string& name);

// Like result_metadata(), of an opaque operator; results that are written arguments have no metadata. The
// fake function runs on trace tensors of a recording of its own, once for a call of the same operator with
// the same metadata and numbers. CannotTrace if there is none, if it needs data, or if it raises.
ResultMetadata fake_metadata(Session& session, const OperatorInfo& info,
                             const std::vector<graph::Argument>& args, std::span<const c10::IValue> call);

}  // namespace oxy::trace
