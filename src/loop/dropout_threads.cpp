#include "loop/dropout_threads.h"

#include <algorithm>

namespace oxy::loop {

using sym::floordiv;
using sym::mod;

DropoutPlace dropout_place(const Expr& element, const Expr& count, int64_t width, int64_t threads) {
  const bool is_one_round = count.range().high <= width * threads;
  const Expr share = floordiv(element, width);  // of neighbours that a thread takes at a time
  const Expr thread = is_one_round ? share : mod(share, threads);
  const Expr round = is_one_round ? Expr(0) : floordiv(share, threads);
  if (width == 1) return {floordiv(round, kPhiloxWords), thread * kPhiloxWords + mod(round, kPhiloxWords)};
  const Expr neighbour = mod(element, width);
  const int64_t draws = std::max<int64_t>(1, width / kPhiloxWords);  // of a thread in a round
  return {round * draws + floordiv(neighbour, kPhiloxWords),
          thread * kPhiloxWords + mod(neighbour, kPhiloxWords)};
}

}  // namespace oxy::loop
