// What kinds of devices are called: in graphs, in messages and by torch.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "aten/tensor_meta.h"

namespace oxy {

inline constexpr std::array<std::pair<Device::Kind, std::string_view>, 3> kDeviceKinds = {{
    {Device::Kind::Cpu, "cpu"},
    {Device::Kind::Cuda, "cuda"},
    {Device::Kind::Meta, "meta"},
}};

}  // namespace oxy
