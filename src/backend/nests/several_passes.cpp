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

InstId constant(Item& item, DType dtype, double value) {
  return item.insts.add({.op = Op::Constant, .dtype = dtype, .constant = {value}});
}

InstId apply(Item& item, Op op, DType dtype, InstId a, InstId b) {
  return item.insts.add({.op = op, .dtype = dtype, .operands = {a, b, kNoInst}});
}

// An item over the rows that `item` reduces: one element each.
Item for_each_row(const Item& item) {
  Item rows;
  rows.extents.assign(item.extents.begin(),
                      item.extents.begin() + static_cast<std::ptrdiff_t>(item.loop_count));
  rows.loop_count = item.loop_count;
  return rows;
}

void store(Item& item, ItemStore to, InstId value) {
  to.value = value;
  to.mode = loop::StoreMode::Set;
  to.result = 0;
  item.stores.push_back(to);
}

// How many numbers `reduction` reduces to one, as a value of `item`.
InstId elements_of_row(Item& item, const Item& reduction) {
  Expr count = 1;
  for (size_t k = reduction.loop_count; k < reduction.extents.size(); ++k)
    count = count * reduction.extents[k];
  const DType dtype = reduction.accumulate;
  if (const auto known = count.as_constant()) return constant(item, dtype, static_cast<double>(*known));
  const IndexId index = item.expressions.add(count);
  const InstId n = item.insts.add({.op = Op::Index, .dtype = DType::Int64, .index = index});
  return item.insts.add({.op = Op::Cast, .dtype = dtype, .operands = {n, kNoInst, kNoInst}});
}

// About the most that the mean of a row may be off by, relative to itself, squared: 2^12 roundings, one for
// each number that a lane adds up in the longest rows of two passes (NestBuilder).
constexpr double kSquaredErrorOfFloats = 0x1p-24, kSquaredErrorOfDoubles = 0x1p-82;

template <class... Items>
std::vector<Item> in_order(Items&&... items) {
  std::vector<Item> list;
  list.reserve(sizeof...(items));
  (list.push_back(std::forward<Items>(items)), ...);
  return list;
}

}  // namespace

std::vector<Item> two_pass_variance(const Item& item, const NewBuffer& new_buffer) {
  const DType dtype = item.accumulate;
  const ItemStore mean = result_store(item, 0, new_buffer);
  const ItemStore variation = result_store(item, 1, new_buffer);
  const auto own = [&](DType of) { return ItemStore{new_buffer(of), mean.offset}; };
  const ItemStore total = own(dtype), quotient = own(dtype), squares = own(dtype), rest = own(dtype);
  const ItemStore is_rounding = own(DType::Bool);

  Item sum = item;
  sum.kind = ReductionKind::Sum;
  sum.stores = {total};

  Item divide = for_each_row(item);
  store(divide, quotient,
        apply(divide, Op::Div, dtype, add_load(divide, total, dtype), elements_of_row(divide, item)));

  // The sum of a function of what differs from the first mean.
  const auto sum_of_differences = [&](const ItemStore& to, bool squared) {
    Item pass = item;
    pass.kind = ReductionKind::Sum;
    const InstId off = apply(pass, Op::Sub, dtype, item.reduced, add_load(pass, quotient, dtype));
    pass.reduced = squared ? apply(pass, Op::Mul, dtype, off, off) : off;
    pass.stores = {to};
    return pass;
  };
  Item square = sum_of_differences(squares, true);

  Item compare = for_each_row(item);
  const InstId m = add_load(compare, quotient, dtype);
  const InstId limit =
      apply(compare, Op::Mul, dtype, apply(compare, Op::Mul, dtype, m, m),
            apply(compare, Op::Mul, dtype, elements_of_row(compare, item),
                  constant(compare, dtype,
                           dtype == DType::Float64 ? kSquaredErrorOfDoubles : kSquaredErrorOfFloats)));
  store(compare, is_rounding, apply(compare, Op::Lt, DType::Bool, add_load(compare, squares, dtype), limit));

  Item add_up = sum_of_differences(rest, false);
  add_up.condition = is_rounding.buffer;

  Item correct = for_each_row(item);
  correct.condition = is_rounding.buffer;
  const InstId left = add_load(correct, rest, dtype);
  const InstId shift = apply(correct, Op::Div, dtype, left, elements_of_row(correct, item));
  store(correct, quotient, apply(correct, Op::Add, dtype, add_load(correct, quotient, dtype), shift));
  const InstId less = apply(correct, Op::Sub, dtype, add_load(correct, squares, dtype),
                            apply(correct, Op::Mul, dtype, left, shift));
  store(correct, squares, apply(correct, Op::Maximum, dtype, less, constant(correct, dtype, 0)));

  Item finish = for_each_row(item);
  store(finish, mean, add_load(finish, quotient, dtype));
  store(finish, variation, add_load(finish, squares, dtype));
  return in_order(std::move(sum), std::move(divide), std::move(square), std::move(compare), std::move(add_up),
                  std::move(correct), std::move(finish));
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
