// The words of the text form that printer and parser share.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "aten/tensor_meta.h"

namespace oxy::graph {

inline constexpr std::array<std::pair<MemoryFormat, std::string_view>, 4> kMemoryFormats = {{
    {MemoryFormat::Contiguous, "contiguous"},
    {MemoryFormat::Preserve, "preserve"},
    {MemoryFormat::ChannelsLast, "channels_last"},
    {MemoryFormat::ChannelsLast3d, "channels_last_3d"},
}};

}  // namespace oxy::graph
