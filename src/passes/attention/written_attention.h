// Attention that a program writes as products: softmax(query @ keys^T * scale + mask) @ values.
#pragma once

#include <optional>
#include <vector>

#include "passes/attention/axes.h"

namespace oxy::passes {

// The axes. Attention of one batch, or of one head, has an axis of size 1.
inline constexpr size_t kBatches = 0, kHeads = 1, kRows = 2, kKeys = 3, kWidth = 4;

// What happens to the scores between the product and the softmax, in the order in which it does.
struct ScoreStep {
  enum class Kind : uint8_t {
    Scale,  // times `number`
    Add,    // plus `number` times `tensor`
    Fill,   // `number` where `tensor` is `where`
  };
  Kind kind = Kind::Scale;
  double number = 1;
  ValueId tensor = graph::kNoValue;
  bool where = true;
  ValueId scores = graph::kNoValue;  // before it
  Placement placement = {};          // of the scores; `tensor` is broadcast to them
};

// A factor of a product.
struct AttentionOperand {
  ValueId tensor;
  Placement placement;
  double scale = 1;  // it is the tensor times this
};

struct WrittenAttention {
  Axes axes;
  AttentionOperand query, keys, values;
  std::vector<ScoreStep> steps;
  NodeId result;  // the second product, [batches and heads, rows, width]
};

// The attention whose probabilities a softmax computes. Nothing: it is another softmax, or somebody else
// reads scores or probabilities.
std::optional<WrittenAttention> written_attention(const Graph& graph,
                                                  const IdVector<ValueId, NodeId>& readers,
                                                  const Node& softmax);

}  // namespace oxy::passes
