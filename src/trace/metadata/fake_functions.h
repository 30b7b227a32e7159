// Metadata of the results of opaque operators, from the fake functions that their authors have registered.
#pragma once

#include <span>

#include "cpy/ref.h"
#include "trace/metadata/metadata.h"

namespace oxy::trace {

// The object that torch.library.custom_op() has made for the operator "library::name"; null, without a Python
// error, if it was defined in another way. Needs the GIL.
cpy::Ref custom_op_object(const std::string& name);

// Like result_metadata() (metadata.h), for an opaque operator. Results that are written arguments have no
// metadata. The fake function runs on trace tensors of a recording of its own, once for all calls with the
// same metadata and numbers. Throws CannotTrace if there is no fake function, if it needs data, or if it
// raises.
ResultMetadata fake_metadata(Session& session, const OperatorInfo& info,
                             const std::vector<graph::Argument>& args, std::span<const c10::IValue> call);

}  // namespace oxy::trace
