#include "runtime/values/convert.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "aten/opaque.h"
#include "base/error.h"
#include "runtime/values/host.h"
#include "torch_api/symbolic_node.h"
#include "torch_api/symbolic_object.h"
#include "torch_api/trace_key.h"

namespace oxy::runtime {

namespace {

struct DTypePair {
  DType ours;
  c10::ScalarType torch;
};
constexpr auto kDTypes = std::to_array<DTypePair>({
    {DType::Bool, c10::ScalarType::Bool},
    {DType::UInt8, c10::ScalarType::Byte},
    {DType::Int8, c10::ScalarType::Char},
    {DType::Int16, c10::ScalarType::Short},
    {DType::Int32, c10::ScalarType::Int},
    {DType::Int64, c10::ScalarType::Long},
    {DType::UInt16, c10::ScalarType::UInt16},
    {DType::UInt32, c10::ScalarType::UInt32},
    {DType::UInt64, c10::ScalarType::UInt64},
    {DType::Float16, c10::ScalarType::Half},
    {DType::BFloat16, c10::ScalarType::BFloat16},
    {DType::Float32, c10::ScalarType::Float},
    {DType::Float64, c10::ScalarType::Double},
    {DType::Complex64, c10::ScalarType::ComplexFloat},
    {DType::Complex128, c10::ScalarType::ComplexDouble},
});

struct FormatPair {
  MemoryFormat ours;
  c10::MemoryFormat torch;
};
constexpr auto kFormats = std::to_array<FormatPair>({
    {MemoryFormat::Contiguous, c10::MemoryFormat::Contiguous},
    {MemoryFormat::Preserve, c10::MemoryFormat::Preserve},
    {MemoryFormat::ChannelsLast, c10::MemoryFormat::ChannelsLast},
    {MemoryFormat::ChannelsLast3d, c10::MemoryFormat::ChannelsLast3d},
});

std::vector<Expr> expressions(c10::IntArrayRef values) {
  return {values.begin(), values.end()};
}

std::vector<int64_t> constants(const std::vector<Expr>& values) {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const Expr& value : values) result.push_back(value.constant());
  return result;
}

Expr integer(int64_t value) {
  if (value < sym::kMinInt || value > sym::kMaxInt) throw Unsupported("an integer of more than 61 bits");
  return value;
}

graph::Argument number(const c10::Scalar& scalar) {
  if (scalar.isSymInt()) return torch_api::expression_of(scalar.toSymInt());
  if (scalar.isBoolean()) return scalar.toBool();
  if (scalar.isIntegral(false)) return integer(scalar.toLong());
  if (scalar.isComplex()) {
    const c10::complex<double> value = scalar.toComplexDouble();
    return std::complex<double>(value.real(), value.imag());
  }
  if (scalar.isFloatingPoint()) return scalar.toDouble();
  throw Unsupported("a symbolic number as an argument");
}

// A Python number that PyTorch wrapped in a tensor, read past the dispatcher: its value is part of the
// program.
graph::Argument number_of_wrapped(const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case c10::kDouble:
      return *static_cast<const double*>(data);
    case c10::kFloat:
      return static_cast<double>(*static_cast<const float*>(data));
    case c10::kLong:
      if (const auto symbol = torch_api::wrapped_symbolic_integer(tensor))
        return torch_api::expression_of(*symbol);
      return integer(*static_cast<const int64_t*>(data));
    case c10::kBool:
      return *static_cast<const bool*>(data);
    case c10::kComplexDouble: {
      const auto& value = *static_cast<const c10::complex<double>*>(data);
      return std::complex<double>(value.real(), value.imag());
    }
    default:
      throw Unsupported(fmt::format("a wrapped number of type {}", c10::toString(tensor.scalar_type())));
  }
}

// The end of a slice may lie beyond every size (PyTorch's "to the end" is the greatest int64): it is cut to
// the range of symbolic integers.
Expr int_argument(const c10::IValue& value, const ArgumentInfo& info) {
  if (!value.isInt()) return torch_api::expression_of(value.toSymInt());
  const int64_t number = value.toInt();
  const bool is_bound = info.name == "start" || info.name == "end";
  return is_bound ? Expr(std::clamp(number, sym::kMinInt, sym::kMaxInt)) : integer(number);
}

std::vector<Expr> int_list(const c10::IValue& value) {
  std::vector<Expr> result;
  if (value.isIntList()) {
    const c10::List<int64_t> list = value.toIntList();
    result.reserve(list.size());
    for (const int64_t item : list) result.push_back(integer(item));
    return result;
  }
  for (const c10::IValue& item : value.toListRef())
    result.push_back(item.isInt() ? integer(item.toInt()) : torch_api::expression_of(item.toSymInt()));
  return result;
}

[[noreturn]] void refuse(const c10::IValue& value, const ArgumentInfo& info) {
  throw Unsupported(fmt::format("argument '{}' is a {}", info.name, value.tagKind()));
}

struct OperatorCache {
  std::shared_mutex mutex;
  std::unordered_map<c10::OperatorHandle, const OperatorSchema*> schemas;
  std::unordered_map<const OperatorSchema*, c10::OperatorHandle> handles;
};

class RemovalListener : public c10::OpRegistrationListener {
 public:
  explicit RemovalListener(std::function<void(const c10::OperatorHandle&)> forget)
      : forget_(std::move(forget)) {}
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override { forget_(op); }

 private:
  std::function<void(const c10::OperatorHandle&)> forget_;
};

OperatorCache& cache() {
  // Never destroyed: torch tells of operators that are removed until the process ends.
  static OperatorCache& instance = []() -> OperatorCache& {
    auto* made = new OperatorCache;
    on_removed_operator([made](const c10::OperatorHandle& removed) {
      std::unique_lock lock(made->mutex);
      made->schemas.erase(removed);
      std::erase_if(made->handles, [&](const auto& entry) { return entry.second == removed; });
    });
    return *made;
  }();
  return instance;
}

}  // namespace

DType dtype_from_torch(c10::ScalarType type) {
  for (const auto& [ours, torch] : kDTypes)
    if (torch == type) return ours;
  throw Unsupported(fmt::format("element type {}", c10::toString(type)));
}

c10::ScalarType dtype_to_torch(DType dtype) {
  for (const auto& [ours, torch] : kDTypes)
    if (ours == dtype) return torch;
  throw InternalError("an element type without a counterpart");
}

Device device_from_torch(c10::Device device) {
  switch (device.type()) {
    case c10::DeviceType::CPU:
      return {Device::Kind::Cpu, device.index()};
    case c10::DeviceType::CUDA:
      return {Device::Kind::Cuda, device.index()};
    case c10::DeviceType::Meta:
      return {Device::Kind::Meta, device.index()};
    default:
      throw Unsupported(fmt::format("device {}", device.str()));
  }
}

std::vector<c10::Device> devices_of(const graph::Graph& graph) {
  std::vector<c10::Device> devices;
  for (const graph::Value& value : graph.values) {
    const c10::Device device = device_to_torch(value.meta->device);
    if (device.type() != kHost && std::ranges::find(devices, device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

c10::Device device_to_torch(Device device) {
  switch (device.kind) {
    case Device::Kind::Cpu:
      return {c10::DeviceType::CPU, device.index};
    case Device::Kind::Cuda:
      return {c10::DeviceType::CUDA, device.index};
    case Device::Kind::Meta:
      return {c10::DeviceType::Meta, device.index};
  }
  throw InternalError("an unknown device");
}

MemoryFormat memory_format_from_torch(c10::MemoryFormat format) {
  for (const auto& [ours, torch] : kFormats)
    if (torch == format) return ours;
  throw Unsupported("an unknown memory format");
}

c10::MemoryFormat memory_format_to_torch(MemoryFormat format) {
  for (const auto& [ours, torch] : kFormats)
    if (ours == format) return torch;
  throw InternalError("a memory format without a counterpart");
}

TensorMeta metadata_of(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.layout() != c10::kStrided)
    throw Unsupported(fmt::format("a tensor of layout {}", c10::str(impl.layout())));
  if (tensor.is_conj() || tensor.is_neg())
    throw Unsupported("a tensor with a lazy conjugate or negative bit");
  if (tensor._is_zerotensor()) throw Unsupported("a tensor of zeros without memory");
  TensorMeta meta;
  meta.dtype = dtype_from_torch(tensor.scalar_type());
  meta.device = device_from_torch(impl.device());
  if (impl.has_symbolic_sizes_strides()) {
    for (const c10::SymInt& size : impl.sym_sizes()) meta.sizes.push_back(torch_api::expression_of(size));
    for (const c10::SymInt& stride : impl.sym_strides())
      meta.strides.push_back(torch_api::expression_of(stride));
    meta.storage_offset = torch_api::expression_of(impl.sym_storage_offset());
    return meta;
  }
  meta.sizes = expressions(impl.sizes());
  meta.strides = expressions(impl.strides());
  meta.storage_offset = impl.storage_offset();
  return meta;
}

at::Tensor meta_tensor(const TensorMeta& meta) {
  const int64_t offset = meta.storage_offset.constant();
  const std::vector<int64_t> sizes = constants(meta.sizes);
  const std::vector<int64_t> strides = constants(meta.strides);
  int64_t extent = offset + 1;
  for (size_t d = 0; d < sizes.size(); ++d) extent += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) extent = offset;
  at::Tensor tensor = at::detail::empty_strided_meta({extent}, {1}, dtype_to_torch(meta.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

void on_removed_operator(std::function<void(const c10::OperatorHandle&)> forget) {
  auto& registrations = *new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().addRegistrationListener(
      std::make_unique<RemovalListener>(std::move(forget))));
  static_cast<void>(registrations);  // for as long as the process lives
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

const OperatorSchema* schema_of(const c10::OperatorHandle& op) {
  OperatorCache& known = cache();
  {
    std::shared_lock lock(known.mutex);
    if (const auto it = known.schemas.find(op); it != known.schemas.end()) return it->second;
  }
  const OperatorSchema* schema = nullptr;
  try {
    // Torch tags attention for its dropout, which the CPU's fused kernel does not have.
    const bool is_random = op.hasTag(at::Tag::nondeterministic_seeded) &&
                           op.schema().name() != "aten::_scaled_dot_product_flash_attention_for_cpu";
    schema = intern_schema(c10::toString(op.schema()), is_random);
  } catch (const UserError& error) {
    throw Unsupported(fmt::format("the schema of {}: {}", op.schema().name(), error.what()));
  }
  std::unique_lock lock(known.mutex);
  known.schemas.emplace(op, schema);
  known.handles.emplace(schema, op);
  return schema;
}

c10::OperatorHandle handle_of(const OperatorSchema& schema) {
  OperatorCache& known = cache();
  {
    std::shared_lock lock(known.mutex);
    if (const auto it = known.handles.find(&schema); it != known.handles.end()) return it->second;
  }
  const size_t colons = schema.name.find("::");
  const size_t dot = schema.name.find('.', colons == std::string::npos ? 0 : colons);
  const std::string base = schema.name.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : schema.name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({base, overload});
  if (!op) throw UserError(fmt::format("torch has no operator {}", schema.name));
  if (is_opaque(schema) && schema_of(*op) != &schema)
    throw UserError(fmt::format("{} has another signature now", schema.name));
  std::unique_lock lock(known.mutex);
  known.handles.emplace(&schema, *op);
  return *op;
}

graph::Argument argument_from_ivalue(const c10::IValue& value, const ArgumentInfo& info,
                                     const std::function<graph::ValueId(const at::Tensor&)>& tensor) {
  if (value.isNone()) return graph::None{};
  switch (info.kind) {
    case ArgumentKind::Tensor: {
      if (!value.isTensor()) refuse(value, info);
      const at::Tensor& t = value.toTensor();
      if (!t.defined()) return graph::None{};
      if (t.unsafeGetTensorImpl()->is_wrapped_number() && is_on_host(t) &&
          !torch_api::is_without_data(*t.unsafeGetTensorImpl()))
        return number_of_wrapped(t);
      return graph::ValueRef{tensor(t)};
    }
    case ArgumentKind::TensorList:
    case ArgumentKind::OptionalTensorList: {
      graph::ValueList list;
      for (const c10::IValue& item : value.toListRef()) {
        const bool absent = item.isNone() || !item.toTensor().defined();
        list.ids.push_back(absent ? graph::kNoValue : tensor(item.toTensor()));
      }
      return list;
    }
    case ArgumentKind::Scalar:
      if (!value.isScalar()) refuse(value, info);
      return number(value.toScalar());
    case ArgumentKind::Int:
      if (!value.isInt() && !value.isSymInt()) refuse(value, info);
      return int_argument(value, info);
    case ArgumentKind::IntList:
      return int_list(value);
    case ArgumentKind::Float:
      if (value.isSymFloat()) refuse(value, info);
      return value.toDouble();
    case ArgumentKind::FloatList:
      return value.toDoubleVector();
    case ArgumentKind::Bool:
      if (value.isSymBool()) refuse(value, info);
      return value.toBool();
    case ArgumentKind::BoolList: {
      std::vector<bool> list;
      for (const bool item : value.toBoolList()) list.push_back(item);
      return list;
    }
    case ArgumentKind::String:
      return value.toStringRef();
    case ArgumentKind::DType:
      return dtype_from_torch(value.toScalarType());
    case ArgumentKind::Device:
      return device_from_torch(value.toDevice());
    case ArgumentKind::MemoryFormat:
      return memory_format_from_torch(value.toMemoryFormat());
    case ArgumentKind::Layout:
      if (value.toLayout() != c10::kStrided) throw Unsupported(c10::str("layout ", value.toLayout()));
      return graph::None{};
    case ArgumentKind::Generator:
      if (!value.toGenerator().defined()) return graph::None{};
      throw Unsupported("a generator as an argument", "use the global generator (torch.manual_seed)");
    case ArgumentKind::Other:
      break;
  }
  refuse(value, info);
}

c10::IValue ivalue_from_argument(const graph::Argument& argument, const ArgumentInfo& info,
                                 const std::function<at::Tensor(graph::ValueId)>& tensor) {
  const auto scalar = [&]() -> std::optional<c10::Scalar> {
    if (const auto* b = std::get_if<bool>(&argument)) return c10::Scalar(*b);
    if (const auto* i = std::get_if<Expr>(&argument)) return c10::Scalar(i->constant());
    if (const auto* f = std::get_if<double>(&argument)) return c10::Scalar(*f);
    if (const auto* c = std::get_if<std::complex<double>>(&argument))
      return c10::Scalar(c10::complex<double>(c->real(), c->imag()));
    return std::nullopt;
  };
  const auto wrong = [&]() -> InternalError {
    return InternalError(fmt::format("argument '{}' has a value of the wrong kind", info.name));
  };
  if (std::holds_alternative<graph::None>(argument)) {
    if (info.kind == ArgumentKind::Layout && !info.optional) return c10::kStrided;
    if (info.kind == ArgumentKind::Tensor && !info.optional) return at::Tensor();
    return {};
  }
  switch (info.kind) {
    case ArgumentKind::Tensor:
      if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return tensor(ref->id);
      if (const auto value = scalar()) return wrapped_number(*value);
      throw wrong();
    case ArgumentKind::TensorList: {
      c10::List<at::Tensor> list;
      for (const graph::ValueId id : std::get<graph::ValueList>(argument).ids)
        list.push_back(id == graph::kNoValue ? at::Tensor() : tensor(id));
      return list;
    }
    case ArgumentKind::OptionalTensorList: {
      c10::List<std::optional<at::Tensor>> list;
      for (const graph::ValueId id : std::get<graph::ValueList>(argument).ids)
        list.push_back(id == graph::kNoValue ? std::optional<at::Tensor>() : tensor(id));
      return list;
    }
    case ArgumentKind::Scalar:
      if (const auto value = scalar()) return *value;
      throw wrong();
    case ArgumentKind::Float:
      if (const auto value = scalar()) return value->toDouble();
      throw wrong();
    default:
      break;
  }
  return std::visit(
      [&](const auto& value) -> c10::IValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> || std::is_same_v<T, std::string>)
          return value;
        else if constexpr (std::is_same_v<T, Expr>)
          return value.constant();
        else if constexpr (std::is_same_v<T, DType>)
          return dtype_to_torch(value);
        else if constexpr (std::is_same_v<T, Device>)
          return device_to_torch(value);
        else if constexpr (std::is_same_v<T, MemoryFormat>)
          return memory_format_to_torch(value);
        else if constexpr (std::is_same_v<T, std::vector<Expr>>)
          return constants(value);
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          return value;
        else if constexpr (std::is_same_v<T, std::vector<bool>>) {
          c10::List<bool> list;
          for (const bool item : value) list.push_back(item);
          return list;
        } else
          throw wrong();
      },
      argument);
}

at::Tensor wrapped_number(const c10::Scalar& value) {
  const auto make = [](c10::ScalarType type, auto number) {
    at::Tensor tensor = at::detail::empty_cpu({}, type);
    *static_cast<decltype(number)*>(tensor.mutable_data_ptr()) = number;
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  };
  if (value.isBoolean()) return make(c10::kBool, value.toBool());
  if (value.isIntegral(false)) return make(c10::kLong, value.toLong());
  if (value.isComplex()) return make(c10::kComplexDouble, value.toComplexDouble());
  return make(c10::kDouble, value.toDouble());
}

void for_each_returned_tensor(const std::vector<c10::IValue>& stack, size_t returns,
                              const std::function<void(const at::Tensor&)>& fn) {
  for (size_t i = stack.size() - returns; i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isTensor()) {
      fn(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) fn(tensor);
    }
  }
}

}  // namespace oxy::runtime
