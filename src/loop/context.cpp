#include "loop/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "loop/variables.h"
#include "loop/view.h"

namespace oxy::loop {

namespace {

constexpr size_t kMaxOrigins = 12;

constexpr int kLittleWork = 6;

std::vector<Expr> sizes_that_count(const Source& s) {
  std::vector<Expr> sizes = s.sizes;
  std::erase(sizes, Expr(1));
  return sizes;
}

// Whether `read` lacks a dimension of `s` and has no other.
bool is_repeated_in(const Source& read, const Source& s) {
  std::vector<Expr> left = sizes_that_count(s);
  for (const Expr& size : sizes_that_count(read)) {
    const auto found = std::ranges::find(left, size);
    if (found == left.end()) return false;
    left.erase(found);
  }
  return !left.empty();
}

// Whether every reader may compute the value again, rather than read it from memory: with little work, from
// no more bytes than the value has, and from values that repeat along it. A batch that is normalised is such
// a value: it is made of the batch and of numbers for a channel or for a row. Sizes themselves do not decide:
// symbols would then round in other places than numbers.
bool is_cheap(const Source& s) {
  if (s.reads.empty()) return s.work <= 16;
  if (s.reads.size() == 1 && s.work <= 2) return true;
  if (s.checks || s.reads.size() > kMaxReads || s.work > kLittleWork) return false;
  int large = 0;
  for (const Source* read : s.reads) {
    if (is_repeated_in(*read, s)) continue;
    if (item_size(read->dtype) > item_size(s.dtype)) return false;
    ++large;
  }
  return large <= 1;
}

void insert_sorted(std::vector<const Source*>& set, const Source* s) {
  auto place = std::ranges::lower_bound(set, s);
  if ((place == set.end() || *place != s) && set.size() <= kMaxReads) set.insert(place, s);
}

std::string_view short_name(std::string_view op) {
  if (size_t colons = op.find("::"); colons != op.npos) op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

void add_origin(std::vector<std::string_view>& origin, std::string_view name) {
  if (origin.size() < kMaxOrigins && std::ranges::find(origin, name) == origin.end()) origin.push_back(name);
}

int result_count(ReductionKind kind) {
  return kind == ReductionKind::Welford || kind == ReductionKind::OnlineSoftmax ? 2 : 1;
}

DType result_dtype(ReductionKind kind, DType accumulate) {
  switch (kind) {
    case ReductionKind::Any:
    case ReductionKind::All:
      return DType::Bool;
    case ReductionKind::ArgMax:
    case ReductionKind::ArgMin:
      return DType::Int64;
    default:
      return accumulate;
  }
}

// Loop variables for the dimensions whose size is not 1; the others have index 0.
Index make_loops(const std::vector<Expr>& sizes, int64_t family, std::vector<LoopVariable>& loops) {
  Index index;
  index.reserve(sizes.size());
  for (const Expr& size : sizes) {
    if (size == Expr(1)) {
      index.emplace_back(0);
      continue;
    }
    Expr variable = index_variable(family, static_cast<int64_t>(loops.size()), size);
    loops.push_back({variable, size});
    index.push_back(std::move(variable));
  }
  return index;
}

}  // namespace

LoweringContext::LoweringContext(const graph::Graph& graph, const LoweringOptions& options)
    : graph_(graph),
      options_(options),
      values_(graph.values.size()),
      uses_(graph.values.size()),
      users_(graph.values.size()) {
  for (const graph::Location& location : graph.locations) program_.locations.add(location.text);
  program_.buffers.reserve(graph.values.size());
  for (const graph::NodeId n : graph.nodes.ids())
    graph::for_each_input(graph.nodes[n], [&](graph::ValueId id) {
      auto& users = users_[id];
      if (!users.empty() && users.back() == n) return;
      users.push_back(n);
      ++uses_[id];
    });
  for (const graph::Output& output : graph.outputs)
    if (output.value != graph::kNoValue) ++uses_[output.value];
  for (const graph::Mutation& mutation : graph.mutations) ++uses_[mutation.value];

  auto add_fixed = [&](graph::ValueId id, BufferKind kind, int32_t source, std::string name) {
    const TensorMeta& m = meta(id);
    BufferId buffer = add_buffer({.name = std::move(name),
                                  .dtype = m.dtype,
                                  .sizes = m.sizes,
                                  .kind = kind,
                                  .source = source,
                                  .strides = m.strides,
                                  .device = m.device});
    values_[id] = buffer_tensor(buffer);
    return buffer;
  };
  for (size_t k = 0; k < graph.inputs.size(); ++k)
    input_buffers_.push_back(
        add_fixed(graph.inputs[k], BufferKind::Input, static_cast<int32_t>(k), fmt::format("arg{}", k)));
  for (const graph::Constant& constant : graph.constants)
    add_fixed(constant.value, BufferKind::Constant, constant.handle, fmt::format("const{}", constant.handle));
}

BufferId LoweringContext::add_buffer(Buffer buffer) {
  if (buffer.name.empty()) buffer.name = fmt::format("buf{}", program_.buffers.next_id());
  return program_.buffers.add(std::move(buffer));
}

Tensor LoweringContext::buffer_tensor(BufferId id) {
  const Buffer& buffer = program_.buffers[id];
  auto source = std::make_shared<Source>();
  source->dtype = buffer.dtype;
  source->sizes = buffer.sizes;
  source->device = buffer.device;
  source->buffer = id;
  if (node_ != nullptr) source->location = node_->location;
  return {source->dtype, source->sizes, source, std::nullopt};
}

Tensor LoweringContext::value(graph::ValueId id) const {
  const auto& tensor = values_.at(id);
  check(tensor.has_value(), fmt::format("value %{} is used before it is lowered", id));
  return *tensor;
}

Tensor LoweringContext::operand(const graph::Argument& argument) const {
  if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return value(ref->id);
  auto source = std::make_shared<Source>();
  if (const bool* b = std::get_if<bool>(&argument)) {
    source->dtype = DType::Bool;
    source->element = [b = *b](BodyBuilder& builder, const Index&) {
      return builder.constant(Scalar{b}, DType::Bool);
    };
  } else if (const Expr* e = std::get_if<Expr>(&argument)) {
    source->dtype = DType::Int64;
    source->element = [e = *e](BodyBuilder& builder, const Index&) { return builder.index(e); };
  } else if (const double* d = std::get_if<double>(&argument)) {
    source->dtype = DType::Float64;
    source->element = [d = *d](BodyBuilder& builder, const Index&) {
      return builder.constant(d, DType::Float64);
    };
  } else {
    throw Unsupported("the operand is neither a tensor nor a real number");
  }
  return {source->dtype, {}, source, std::nullopt};
}

void LoweringContext::begin_node(const graph::Node& node) {
  node_ = &node;
  const auto result =
      std::ranges::find_if(node.outputs, [](graph::ValueId id) { return id != graph::kNoValue; });
  if (result != node.outputs.end()) device_ = meta(*result).device;
}

void LoweringContext::set(graph::ValueId id, Tensor tensor) {
  const TensorMeta& m = meta(id);
  check(tensor.dtype == m.dtype && tensor.sizes.size() == m.sizes.size(),
        fmt::format("{} was lowered to {} of rank {} instead of {}", node_ ? node_->op->name : "a value",
                    name(tensor.dtype), tensor.sizes.size(), str(m)));
  Source& source = *tensor.source;
  if (!tensor.map && source.strides.empty() && is_non_overlapping_and_dense(m)) source.strides = m.strides;
  if (!tensor.is_realised()) {
    bool grown = source.reads.size() > kMaxReads || source.work > kMaxWork;
    grown |= source.checks && uses(id) == 0;  // only its checks are wanted
    if (!options_.inline_pointwise)
      realise(source);
    else if (grown || (uses(id) > 1 && !is_cheap(source)))
      keep(source);
  }
  values_.at(id) = std::move(tensor);
}

std::shared_ptr<Source> LoweringContext::new_source(std::span<const Tensor> inputs, std::vector<Expr> sizes,
                                                    DType dtype, int work) {
  auto source = std::make_shared<Source>();
  source->dtype = dtype;
  source->sizes = std::move(sizes);
  source->device = device_;
  source->work = work;
  for (size_t k = 0; k < inputs.size(); ++k) {
    inputs[k].source->is_read = true;
    const Source& input = *inputs[k].source;
    if (std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(k),
                    [&](const Tensor& earlier) { return earlier.source == inputs[k].source; }))
      continue;
    if (input.buffer != kNoBuffer) {
      insert_sorted(source->reads, &input);
      continue;
    }
    for (const Source* read : input.reads) insert_sorted(source->reads, read);
    source->work += input.work;
    source->checks |= input.checks;
    for (std::string_view name : input.origin) add_origin(source->origin, name);
  }
  if (node_ != nullptr) {
    add_origin(source->origin, short_name(node_->op->name));
    source->location = node_->location;
  }
  return source;
}

Value LoweringContext::element(BodyBuilder& b, const Tensor& x, const Index& index) {
  const Source& source = *x.source;
  if (source.buffer != kNoBuffer)
    return b.load(source.buffer, source.dtype, x.map ? at(*x.map, index) : index);
  if (!x.map)
    return b.element(&source, index,
                     [&] { return b.at(source.location, [&] { return source.element(b, index); }); });
  Index mapped = at(*x.map, index);
  return b.element(&source, mapped,
                   [&] { return b.at(source.location, [&] { return source.element(b, mapped); }); });
}

Tensor LoweringContext::generate(std::vector<Tensor> inputs, std::vector<Expr> sizes, DType dtype,
                                 ElementFunction fn, int work, bool checks) {
  keep_checks(inputs);
  auto source = new_source(inputs, sizes, dtype, work);
  source->checks = checks;
  source->element = std::move(fn);
  return {dtype, std::move(sizes), std::move(source), std::nullopt};
}

Tensor LoweringContext::pointwise(std::vector<Tensor> inputs, std::vector<Expr> sizes, DType dtype,
                                  ScalarFunction fn, int work) {
  for (const Tensor& input : inputs) require_broadcast(input.sizes, sizes);
  auto source = new_source(inputs, sizes, dtype, work);
  source->element = [inputs = std::move(inputs), fn = std::move(fn), dtype](BodyBuilder& b,
                                                                            const Index& index) {
    std::vector<Value> elements;
    elements.reserve(inputs.size());
    for (const Tensor& input : inputs)
      elements.push_back(element(b, input, broadcast_index(input.sizes, index)));
    Value result = fn(b, elements);
    check(result.dtype == compute_dtype(dtype), "an element function gave a value of another type");
    return result;
  };
  return {dtype, std::move(sizes), std::move(source), std::nullopt};
}

Tensor LoweringContext::constant(Scalar value, std::vector<Expr> sizes, DType dtype) {
  return generate({}, std::move(sizes), dtype, [value, dtype](BodyBuilder& b, const Index&) {
    return b.constant(value, compute_dtype(dtype));
  });
}

Tensor LoweringContext::view(const Tensor& x, std::vector<Expr> sizes,
                             const std::function<Index(const Index&)>& fn) {
  keep_checks(std::span(&x, 1));
  return whole_view(x, std::move(sizes), fn);
}

Tensor LoweringContext::whole_view(const Tensor& x, std::vector<Expr> sizes,
                                   const std::function<Index(const Index&)>& fn) const {
  Index map = fn(view_index(sizes));
  check(map.size() == x.sizes.size(), "a view's index has another rank than the viewed tensor");
  if (x.map) map = at(*x.map, map);
  Tensor result{x.dtype, std::move(sizes), x.source, std::nullopt};
  if (result.sizes != x.source->sizes || map != view_index(result.sizes)) result.map = std::move(map);
  return result;
}

Tensor LoweringContext::reshape(const Tensor& x, std::vector<Expr> sizes) const {
  if (sizes == x.sizes) return x;
  std::vector<Expr> to = sizes;
  return whole_view(x, std::move(sizes),
                    [&](const Index& index) { return reshape_index(x.sizes, to, index); });
}

Tensor LoweringContext::expand(const Tensor& x, std::vector<Expr> sizes) const {
  if (sizes == x.sizes) return x;
  require_broadcast(x.sizes, sizes);
  return whole_view(x, std::move(sizes), [&](const Index& index) { return broadcast_index(x.sizes, index); });
}

Tensor LoweringContext::permute(const Tensor& x, std::span<const int64_t> dims) const {
  std::vector<Expr> sizes;
  for (int64_t d : dims) sizes.push_back(x.sizes.at(static_cast<size_t>(d)));
  return whole_view(x, std::move(sizes), [&](const Index& index) {
    Index source(index.size());
    for (size_t k = 0; k < dims.size(); ++k) source[static_cast<size_t>(dims[k])] = index[k];
    return source;
  });
}

Tensor LoweringContext::cast(const Tensor& x, DType dtype) {
  if (x.dtype == dtype) return x;
  return pointwise({x}, x.sizes, dtype, [dtype](BodyBuilder& b, std::span<const Value> v) {
    return b.cast(v[0], compute_dtype(dtype));
  });
}

Tensor LoweringContext::converted(const Tensor& x, DType dtype) {
  Tensor result = pointwise({x}, x.sizes, dtype, [dtype](BodyBuilder& b, std::span<const Value> v) {
    return b.round_to(b.cast(v[0], compute_dtype(dtype)), dtype);
  });
  if (item_size(x.dtype) < item_size(dtype) && product(x.source->sizes) == product(x.sizes))
    result.source->narrow = std::make_shared<const Tensor>(x);
  return result;
}

std::vector<Tensor> LoweringContext::reduce(ReductionKind kind, std::vector<Tensor> inputs,
                                            const std::vector<Expr>& kept, const std::vector<Expr>& reduced,
                                            DType accumulate, const ReductionFunction& fn) {
  keep_checks(inputs);
  auto description = new_source(inputs, kept, accumulate, 1);
  Computation c;
  c.kind = kind;
  c.accumulate = accumulate;
  Index outer = make_loops(kept, kLoopVariables, c.loops);
  Index inner = make_loops(reduced, kReductionVariables, c.reduction);
  if (c.reduction.empty()) c.reduction.push_back({reduction_variable(0, 1), 1});
  BodyBuilder builder(description->location);
  c.reduced = fn(builder, outer, inner).id;
  c.body = builder.take({&c.reduced});
  c.location = description->location;
  c.origin = fmt::format("{}", fmt::join(description->origin, ", "));
  std::vector<Tensor> results;
  for (int k = 0; k < result_count(kind); ++k) {
    results.push_back(new_buffer(kept, result_dtype(kind, accumulate)));
    c.stores.push_back({results.back().source->buffer, outer, kNoInst, StoreMode::Set, k});
  }
  program_.steps.add(std::move(c));
  return results;
}

std::vector<Tensor> LoweringContext::reduce(ReductionKind kind, const Tensor& x, std::vector<int64_t> dims,
                                            bool keepdim, DType accumulate,
                                            const std::function<Value(Value)>& fn) {
  if (dims.empty())
    for (int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  std::vector<Expr> kept;
  std::vector<Expr> reduced;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Expr& size = x.sizes[static_cast<size_t>(d)];
    bool is_reduced = std::ranges::find(dims, d) != dims.end();
    if (is_reduced) reduced.push_back(size);
    if (!is_reduced || keepdim) kept.push_back(is_reduced ? Expr(1) : size);
  }
  return reduce(kind, {x}, kept, reduced, accumulate,
                [&](BodyBuilder& b, const Index& outer, const Index& inner) {
                  Index index;
                  size_t next_outer = 0;
                  size_t next_inner = 0;
                  for (int64_t d = 0; d < x.rank(); ++d) {
                    bool is_reduced = std::ranges::find(dims, d) != dims.end();
                    index.push_back(is_reduced ? inner[next_inner++] : outer[next_outer]);
                    next_outer += !is_reduced || keepdim;
                  }
                  Value value = element(b, x, index);
                  return fn ? fn(value) : value;
                });
}

Tensor LoweringContext::scan(ReductionKind kind, const Tensor& x, int64_t dim, DType accumulate, DType dtype,
                             const std::function<Value(Value)>& fn) {
  keep_checks(std::span(&x, 1));
  auto description = new_source(std::span(&x, 1), x.sizes, dtype, 1);
  Computation c;
  c.kind = kind;
  c.accumulate = accumulate;
  const auto along = static_cast<size_t>(dim);
  std::vector<Expr> rows = x.sizes;
  rows[along] = 1;
  Index index = make_loops(rows, kLoopVariables, c.loops);
  index[along] = make_loops({x.sizes[along]}, kReductionVariables, c.reduction)[0];
  BodyBuilder builder(description->location);
  c.reduced = fn(element(builder, x, index)).id;
  c.body = builder.take({&c.reduced});
  c.location = description->location;
  c.origin = fmt::format("{}", fmt::join(description->origin, ", "));
  Tensor result = new_buffer(x.sizes, dtype);
  c.stores.push_back({result.source->buffer, std::move(index), kNoInst});
  program_.steps.add(std::move(c));
  return result;
}

void LoweringContext::need_elements(const graph::Node& node, const Expr& size) {
  if (size == Expr(0)) throw Unsupported(fmt::format("{}: nothing to index", node.op->name));
  const bool may_be_none = size.range().low < 1;
  if (may_be_none && std::ranges::find(program_.positive, size) == program_.positive.end())
    program_.positive.push_back(size);
}

void LoweringContext::realise(Source& source) {
  if (source.buffer != kNoBuffer) return;
  Computation c;
  Index index = make_loops(source.sizes, kLoopVariables, c.loops);
  BodyBuilder builder(source.location);
  InstId value = builder.store(source.element(builder, index), source.dtype).id;
  c.body = builder.take({&value});
  c.location = source.location;
  c.origin = fmt::format("{}", fmt::join(source.origin, ", "));
  source.buffer = add_buffer({.dtype = source.dtype, .sizes = source.sizes, .device = source.device});
  c.stores.push_back({source.buffer, std::move(index), value, StoreMode::Set});
  program_.steps.add(std::move(c));
  source.is_computed = true;
  source.element = nullptr;
  source.narrow = nullptr;
  source.reads.clear();
  source.origin.clear();
  source.checks = false;
}

void LoweringContext::keep(Source& source) {
  if (source.narrow == nullptr) return realise(source);
  Source& narrow = *source.narrow->source;
  std::erase_if(source.origin, [&](std::string_view name) {
    return std::ranges::find(narrow.origin, name) != narrow.origin.end();
  });
  realise(narrow);
  source.reads = {&narrow};
  source.work = 1;
  source.checks = false;
}

void LoweringContext::keep_checks(std::span<const Tensor> inputs) {
  for (const Tensor& input : inputs)
    if (input.source->checks) realise(*input.source);
}

void LoweringContext::realise(const Tensor& x) {
  realise(*x.source);
}

void LoweringContext::realise_unless_cheap(const Tensor& x) {
  if (!is_cheap(*x.source)) keep(*x.source);
}

Tensor LoweringContext::new_buffer(std::vector<Expr> sizes, DType dtype,
                                   std::optional<std::vector<Expr>> strides) {
  Tensor whole = buffer_tensor(add_buffer(
      {.dtype = dtype, .sizes = std::move(sizes), .strides = std::move(strides), .device = device_}));
  whole.source->is_computed = true;
  return whole;
}

Tensor LoweringContext::new_buffer_of_parts(std::vector<Expr> sizes, DType dtype) {
  Tensor whole = new_buffer(std::move(sizes), dtype);
  program_.buffers[whole.source->buffer].is_of_parts = true;
  return whole;
}

void LoweringContext::store(const Tensor& target, const std::vector<Expr>& sizes, const ElementFunction& fn,
                            const StoreFunction& position, StoreMode mode, std::span<const Tensor> inputs,
                            bool in_order) {
  check(target.is_realised() && !target.map, "stores go to whole buffers");
  keep_checks(inputs);
  auto description = new_source(inputs, sizes, target.dtype, 1);
  Computation c;
  Index index = make_loops(sizes, kLoopVariables, c.loops);
  BodyBuilder builder(description->location);
  InstId value = builder.store(fn(builder, index), target.dtype).id;
  Index where = position(builder, index);
  c.body = builder.take({&value}, where);
  c.location = description->location;
  c.origin = fmt::format("{}", fmt::join(description->origin, ", "));
  c.stores.push_back({target.source->buffer, std::move(where), value, mode, 0, in_order});
  program_.steps.add(std::move(c));
}

Tensor LoweringContext::copy(const Tensor& x, std::vector<Expr> strides) {
  Tensor result = buffer_tensor(add_buffer(
      {.dtype = x.dtype, .sizes = x.sizes, .strides = std::move(strides), .device = x.source->device}));
  result.source->is_computed = true;
  store(
      result, x.sizes, [&](BodyBuilder& b, const Index& index) { return element(b, x, index); },
      [](BodyBuilder&, const Index& index) { return index; }, StoreMode::Set, std::span(&x, 1));
  return result;
}

}  // namespace oxy::loop
