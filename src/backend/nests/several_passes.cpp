#include "backend/nests/several_passes.h"

#include <utility>

namespace oxy::backend {

namespace {

using loop::kNoInst;
using loop::Op;
using loop::ReductionKind;

// The store of result k, or one to a buffer of the nest's own.
ItemStore result_store(const Item& item, int result, const NewBuffer& new_buffer) {
  for (const ItemStore& store : item.stores)
    if (store.result == result) return {store.buffer, store.offset, kNoInst, store.mode};
  return {new_buffer(item.accumulate), 0};
}

InstId add_load(Item& item, const ItemStore& of, DType dtype) {
  const IndexId offset = item.expressions.add(of.offset);
  return item.insts.add({.op = Op::Load, .dtype = dtype, .buffer = of.buffer, .index = offset});
}

template <class... Items>
std::vector<Item> in_order(Items&&... items) {
  std::vector<Item> list;
  list.reserve(sizeof...(items));
  (list.push_back(std::forward<Items>(items)), ...);
  return list;
}

}  // namespace

std::vector<Item> two_pass_variance(const Item& item, const NewBuffer& new_buffer) {
  DType dtype = item.accumulate;
  ItemStore mean = result_store(item, 0, new_buffer);
  Item sum = item;
  sum.kind = ReductionKind::Sum;
  sum.stores = {{new_buffer(dtype), mean.offset}};

  Item divide;
  divide.extents.assign(item.extents.begin(),
                        item.extents.begin() + static_cast<std::ptrdiff_t>(item.loop_count));
  divide.loop_count = item.loop_count;
  InstId total = add_load(divide, sum.stores[0], dtype);
  Expr count = 1;
  for (size_t k = item.loop_count; k < item.extents.size(); ++k) count = count * item.extents[k];
  InstId n;
  if (auto c = count.as_constant()) {
    n = divide.insts.add({.op = Op::Constant, .dtype = dtype, .constant = {static_cast<double>(*c)}});
  } else {
    const IndexId index = divide.expressions.add(count);
    n = divide.insts.add({.op = Op::Index, .dtype = DType::Int64, .index = index});
    n = divide.insts.add({.op = Op::Cast, .dtype = dtype, .operands = {n, kNoInst, kNoInst}});
  }
  InstId quotient = divide.insts.add({.op = Op::Div, .dtype = dtype, .operands = {total, n, kNoInst}});
  divide.stores = {{mean.buffer, mean.offset, quotient, loop::StoreMode::Set}};

  Item squares = item;
  squares.kind = ReductionKind::Sum;
  InstId m = add_load(squares, mean, dtype);
  InstId off = squares.insts.add({.op = Op::Sub, .dtype = dtype, .operands = {item.reduced, m, kNoInst}});
  squares.reduced = squares.insts.add({.op = Op::Mul, .dtype = dtype, .operands = {off, off, kNoInst}});
  squares.stores = {result_store(item, 1, new_buffer)};
  return in_order(std::move(sum), std::move(divide), std::move(squares));
}

std::vector<Item> maximum_and_sum(const Item& item, const NewBuffer& new_buffer) {
  DType dtype = item.accumulate;
  Item maximum = item;
  maximum.kind = ReductionKind::Max;
  maximum.stores = {result_store(item, 0, new_buffer)};
  Item sum = item;
  sum.kind = ReductionKind::Sum;
  InstId m = add_load(sum, maximum.stores[0], dtype);
  InstId off = sum.insts.add({.op = Op::Sub, .dtype = dtype, .operands = {item.reduced, m, kNoInst}});
  sum.reduced = sum.insts.add({.op = Op::Exp, .dtype = dtype, .operands = {off, kNoInst, kNoInst}});
  sum.stores = {result_store(item, 1, new_buffer)};
  return in_order(std::move(maximum), std::move(sum));
}

}  // namespace oxy::backend
