// cat and stack. An element of the result is one of a piece. Either all of the result is one loop, whose
// elements choose their piece and read no other; or each piece is a loop that writes its part of the memory.
#include <algorithm>
#include <utility>

#include "ops/indexing/lowerings.h"
#include "ops/indexing/parts.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;

namespace {

// True if the value only goes into elements computed right there, so that memory for it would be a waste.
bool feeds_elements_only(LoweringContext& context, graph::ValueId id) {
  if (context.uses(id) != 1 || context.users(id).size() != 1) return false;
  const Node& user = context.graph().nodes[context.users(id)[0]];
  const OperatorEntry* entry = find(user.op->name);
  if (entry == nullptr || !entry->lower || user.op->is_view() || user.outputs.size() != 1) return false;
  return user.op->name.starts_with("aten::mul") || user.op->name.starts_with("aten::add") ||
         user.op->name.starts_with("aten::sub");
}

struct Piece {
  Tensor tensor;  // of the result's rank
  Expr start;     // along the joined dimension
};

constexpr size_t kMaxInlinePieces = 3;
constexpr size_t kMaxInlineReads = 4;
// Each element of a choice computes all of its pieces, and asks each load whether it is meant.
constexpr size_t kMaxChoices = 8;
constexpr int kMaxWorkOfChoices = 40;

size_t read_count(const Tensor& x) {
  return x.is_realised() ? 1 : x.source->reads.size();
}

// Whether all that is read lies in memory anyway. A loop that reads what another one computes runs with it,
// if it has that one's iterations.
bool reads_given_memory(const Tensor& x) {
  if (x.is_realised()) return !x.source->is_computed;
  return std::ranges::none_of(x.source->reads, &loop::Source::is_computed);
}

bool reads(const Tensor& x, const loop::Source* source) {
  return x.is_realised() ? x.source.get() == source
                         : std::ranges::find(x.source->reads, source) != x.source->reads.end();
}

bool share_reads(const Tensor& x, const Tensor& y) {
  if (x.is_realised()) return reads(y, x.source.get());
  return std::ranges::any_of(x.source->reads, [&](const loop::Source* source) { return reads(y, source); });
}

// Whether loops over the pieces run as one, which reads once what several of them read.
bool are_one_loop(const std::vector<Piece>& pieces) {
  for (size_t k = 1; k < pieces.size(); ++k)
    if (pieces[k].tensor.sizes != pieces[0].tensor.sizes) return false;
  for (size_t k = 1; k < pieces.size(); ++k)
    for (size_t j = 0; j < k; ++j)
      if (share_reads(pieces[j].tensor, pieces[k].tensor)) return true;
  return false;
}

// The pieces as one tensor of `sizes`, whose elements choose: it has no memory. `in_turn`: a load gives what
// the pieces before have given where it is not meant, else loads do not wait for each other.
Tensor choice(LoweringContext& context, const std::vector<Piece>& pieces, std::vector<Expr> sizes, size_t d,
              DType dtype, bool in_turn) {
  std::vector<Tensor> inputs;
  for (const Piece& piece : pieces) inputs.push_back(piece.tensor);
  const Expr first = pieces.front().start;
  return context.generate(
      inputs, std::move(sizes), dtype,
      [=](BodyBuilder& b, const Index& index) {
        const auto at_piece = [&](const Piece& piece) {
          Index source = index;
          source[d] = source[d] - (piece.start - first);
          const Value x = element_as(b, piece.tensor, source, dtype);
          return piece.tensor.dtype == dtype ? x : b.round_to(x, dtype);
        };
        const Value zero = b.constant(loop::Scalar{}, compute_dtype(dtype));
        std::vector<std::pair<Value, Value>> chosen;  // where, what
        Value before = zero;
        for (const Piece& piece : pieces) {
          const Expr start = piece.start - first;
          const auto mask = within(b, index[d], start, start + piece.tensor.sizes[d]);
          if (!mask) return at_piece(piece);
          const Value x = b.masked(*mask, [&] { return at_piece(piece); }, in_turn ? before : zero);
          if (in_turn) before = x;
          chosen.emplace_back(*mask, x);
        }
        if (in_turn) return before;
        Value result = chosen.back().second;
        for (size_t k = chosen.size() - 1; k-- > 0;)
          result = b.where(chosen[k].first, chosen[k].second, result);
        return result;
      },
      4);
}

// Runs of pieces that are chosen among at no cost: nothing is read twice for it.
std::vector<std::vector<Piece>> runs_of_choices(const std::vector<Piece>& pieces) {
  std::vector<std::vector<Piece>> runs;
  // Runs of one length may share a kernel.
  const size_t least = (pieces.size() + kMaxChoices - 1) / kMaxChoices;
  const size_t longest = (pieces.size() + least - 1) / least;
  size_t reads = 0;
  int work = 0;
  bool is_open = false;
  for (const Piece& piece : pieces) {
    const loop::Source& source = *piece.tensor.source;
    const bool may_choose = !source.checks && reads_given_memory(piece.tensor);
    reads += read_count(piece.tensor);
    work += source.work;
    const bool joins = is_open && may_choose && runs.back().size() < longest && reads <= loop::kMaxReads &&
                       work <= kMaxWorkOfChoices;
    if (!joins) {
      runs.emplace_back();
      reads = read_count(piece.tensor);
      work = source.work;
    }
    runs.back().push_back(piece);
    is_open = may_choose;
  }
  return runs;
}

// Joins pieces along dimension d.
void join(LoweringContext& context, const Node& node, size_t d, std::vector<Piece> pieces) {
  const TensorMeta& out = context.output_meta(node);
  const bool chooses = context.chooses_among_joined();
  size_t reads = 0;
  for (const Piece& piece : pieces) reads += read_count(piece.tensor);
  if (pieces.size() <= kMaxInlinePieces && reads <= kMaxInlineReads &&
      feeds_elements_only(context, node.outputs[0]))
    return context.set(node.outputs[0], choice(context, pieces, out.sizes, d, out.dtype, !chooses));
  if (chooses && !are_one_loop(pieces)) {
    const auto sizes_of = [&](const std::vector<Piece>& run) {
      std::vector<Expr> sizes = out.sizes;
      if (run.size() < pieces.size())
        sizes[d] = run.back().start + run.back().tensor.sizes[d] - run.front().start;
      return sizes;
    };
    std::vector<Piece> joined;
    for (const std::vector<Piece>& run : runs_of_choices(pieces))
      joined.push_back(run.size() == 1 ? run.front()
                                       : Piece{choice(context, run, sizes_of(run), d, out.dtype, false),
                                               run.front().start});
    if (joined.size() == 1 && pieces.size() > 1) return context.set(node.outputs[0], joined[0].tensor);
    pieces = std::move(joined);
  }
  const Tensor target = context.new_buffer_of_parts(out.sizes, out.dtype);
  for (const Piece& piece : pieces)
    context.store(
        target, piece.tensor.sizes,
        [&](BodyBuilder& b, const Index& index) { return element_as(b, piece.tensor, index, out.dtype); },
        [&](BodyBuilder&, const Index& index) {
          Index place = index;
          place[d] = place[d] + piece.start;
          return place;
        },
        loop::StoreMode::Set, std::span(&piece.tensor, 1));
  context.set(node.outputs[0], target);
}

}  // namespace

void cat(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  if (out.rank() == 1 && out.sizes[0] == Expr(0))  // of which eager does not look at the dimension
    return context.set(node.outputs[0], context.constant(loop::Scalar{}, out.sizes, out.dtype));
  size_t d = static_cast<size_t>(dim(node, 1, out.rank()));
  std::vector<Piece> pieces;
  Expr start = 0;
  for (graph::ValueId id : tensors(node, 0)) {
    Tensor x = context.value(id);
    if (x.rank() != out.rank()) continue;  // an old exception: empty tensors of rank 1 are skipped
    if (x.sizes[d] == Expr(0)) continue;
    pieces.push_back({x, start});
    start = start + x.sizes[d];
  }
  if (pieces.empty())
    return context.set(node.outputs[0], context.constant(loop::Scalar{}, out.sizes, out.dtype));
  join(context, node, d, pieces);
}

void stack(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  int64_t d = dim(node, 1, out.rank());
  std::vector<Piece> pieces;
  for (graph::ValueId id : tensors(node, 0)) {
    Tensor x = context.value(id);
    std::vector<Expr> sizes = x.sizes;
    sizes.insert(sizes.begin() + d, Expr(1));
    pieces.push_back({context.reshape(x, sizes), static_cast<int64_t>(pieces.size())});
  }
  join(context, node, static_cast<size_t>(d), pieces);
}

}  // namespace oxy::ops::lowerings
