#pragma once

#include <span>
#include <string>

#include "cpy/ref.h"
#include "eval/rebuild/torch_program.h"

namespace oxy::driver {

// The program as a torch.fx.GraphModule: a placeholder for each input, in order (`names[i]`, made a valid
// identifier that no other node, keyword, builtin or module has), and a tuple of all outputs. Throws
// Unsupported if torch.fx refuses a call.
cpy::Ref make_graph_module(const eval::TorchProgram& program, std::span<const std::string> names);

}  // namespace oxy::driver
