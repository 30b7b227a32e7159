// The devices that plans run on. A kind of device is one row here.
#include <Python.h>
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/current.h"
#include "runtime/device/device.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

struct Row {
  c10::DeviceType type;
  std::string_view name;                                         // for the user
  std::unique_ptr<DeviceRuntime> (*make)(std::string& missing);  // null, and says what is missing
};

constexpr auto kRows = std::to_array<Row>({
    {c10::DeviceType::CPU, "the CPU", [](std::string&) { return make_cpu_device(); }},
    {c10::DeviceType::CUDA, "NVIDIA GPUs", make_cuda_device},
});

// Made when it is first asked for: a driver is loaded when the first tensor of its kind is seen.
struct Entry {
  std::once_flag once;
  std::unique_ptr<DeviceRuntime> device;
  std::string missing;
};

// Null: plans never run on such devices.
const Entry* entry_of(c10::DeviceType type) {
  static auto& entries = *new std::array<Entry, kRows.size()>;  // never destroyed, as plans run to the end
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].type != type) continue;
    Entry& entry = entries[i];
    std::call_once(entry.once, [&] {
      entry.device = kRows[i].make(entry.missing);
      if (entry.device) use_accelerator(type);
    });
    return &entry;
  }
  return nullptr;
}

}  // namespace

const DeviceRuntime* find_device(c10::DeviceType type) {
  if (type != kHost && is_accelerator_lost()) return nullptr;
  const Entry* const entry = entry_of(type);
  return entry == nullptr ? nullptr : entry->device.get();
}

void notice_devices_in_use() {
  if (is_accelerator_in_use()) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  for (const Row& row : kRows) {
    if (row.type == kHost) continue;
    // "torch.cuda": PyTorch initialises a kind of device when a program first uses it.
    const std::string name = "torch." + c10::DeviceTypeName(row.type, /*lower_case=*/true);
    PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), name.c_str());
    PyObject* const variables = module ? PyModule_GetDict(module) : nullptr;
    // What is_initialized() looks at first. No Python code runs for it at each call: a signal's handler could
    // run with it, and what it raises would be lost.
    if (!variables || PyDict_GetItemString(variables, "_initialized") != Py_True) continue;
    PyObject* const is_initialized = PyObject_CallMethod(module, "is_initialized", nullptr);
    PyErr_Clear();
    if (is_initialized == Py_True) find_device(row.type);
    Py_XDECREF(is_initialized);
  }
  PyErr_Restore(type, value, traceback);
}

std::span<const c10::DeviceType> device_types() {
  static constexpr auto types = [] {
    std::array<c10::DeviceType, kRows.size()> found{};
    for (size_t i = 0; i < kRows.size(); ++i) found[i] = kRows[i].type;
    return found;
  }();
  return types;
}

std::string why_no_device(c10::DeviceType type) {
  if (type != kHost && is_accelerator_lost())
    return "this process was forked from one that used the device, which drivers do not allow";
  const Entry* const entry = entry_of(type);
  if (entry != nullptr) return entry->missing;
  std::string names;
  for (const Row& row : kRows)
    names += fmt::format("{}{}", names.empty() ? "" : &row == &kRows.back() ? " and for " : ", ", row.name);
  return "graphs are compiled for " + names;
}

const DeviceRuntime& device_runtime(c10::DeviceType type) {
  if (const DeviceRuntime* const found = find_device(type)) return *found;
  throw Unsupported(fmt::format("tensors on {}", c10::DeviceTypeName(type, /*lower_case=*/true)),
                    why_no_device(type));
}

}  // namespace oxy::runtime
