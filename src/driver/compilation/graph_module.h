// Writes a captured region as a torch.fx.GraphModule, for backends of the user's.
#pragma once

#include <span>
#include <string>

#include "cpy/ref.h"
#include "eval/rebuild/torch_program.h"

namespace oxy::driver {

// A new torch.fx.GraphModule. It has a placeholder for each symbol of the program, named as the symbol is,
// and then one for each input, in order. Its name is names[i], made a unique valid identifier. It returns a
// tuple of all outputs. Throws Unsupported if torch.fx refuses a call.
cpy::Ref make_graph_module(const eval::TorchProgram& program, std::span<const std::string> names);

}  // namespace oxy::driver
