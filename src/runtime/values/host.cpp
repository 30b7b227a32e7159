#include "runtime/values/host.h"

#include <ATen/core/ivalue.h>

namespace oxy::runtime {

c10::DeviceType device_type_of(std::span<const c10::IValue> call) {
  for (const c10::IValue& value : call) {
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().device().type();
    if (!value.isTensorList() && !value.isOptionalTensorList()) continue;
    for (const c10::IValue& item : value.toListRef())
      if (item.isTensor() && item.toTensor().defined()) return item.toTensor().device().type();
  }
  return kHost;
}

}  // namespace oxy::runtime
