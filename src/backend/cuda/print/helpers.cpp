#include "backend/cuda/print/helpers.h"

#include <algorithm>

#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

struct Helper {
  std::string_view name, text;
};

// Integer division is C's in Triton; eager's `//` and `%` are Python's.
constexpr Helper kHelpers[] = {
    {"floor_divide", R"(
@triton.jit
def floor_divide(a, b):
    q = a // b
    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), q - 1, q)
)"},
    {"floor_modulo", R"(
@triton.jit
def floor_modulo(a, b):
    r = a % b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)
)"},
    {"floor_quotient", R"(
@triton.jit
def floor_quotient(a, b):
    remainder = libdevice.fmod(a, b)
    q = (a - remainder) / b
    q = tl.where((remainder != 0) & ((b < 0) != (remainder < 0)), q - 1, q)
    floored = tl.floor(q)
    floored = tl.where(q - floored > 0.5, floored + 1, floored)
    return tl.where(b == 0, a / b, tl.where(q == 0, 0 * (a / b), floored))
)"},
    {"floor_remainder", R"(
@triton.jit
def floor_remainder(a, b):
    r = libdevice.fmod(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)
)"},
    {"truncated", R"(
@triton.jit
def truncated(x):
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))
)"},
    {"integer_power", R"(
@triton.jit
def integer_power(x, n, BITS: tl.constexpr):
    power = tl.where(n < 0, tl.where(x == 1, x, tl.where(x == -1, tl.where(n % 2 == 0, -x, x), x * 0)), x * 0 + 1)
    base = x
    for _ in range(BITS - 1):
        power = tl.where((n > 0) & ((n & 1) != 0), power * base, power)
        base = base * base
        n = tl.where(n > 0, n >> 1, n)
    return power
)"},
    {"larger", R"(
@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    {"smaller", R"(
@triton.jit
def smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
)"},
    {"uniform_number", R"(
@triton.jit
def uniform_number(seed, counter, position):
    sequence = position >> 2
    first, second, third, fourth = tl.philox(
        seed.to(tl.uint64),
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        sequence.to(tl.uint32),
        (sequence >> 32).to(tl.uint32),
    )
    word = position & 3
    bits = tl.where(word == 0, first, tl.where(word == 1, second, tl.where(word == 2, third, fourth)))
    return tl.fma(bits.to(tl.uint32).to(tl.float32), 2.3283064365386963e-10, 1.1641532182693481e-10)
)"},
    {"uniform_numbers", R"(
@triton.jit
def uniform_numbers(seed, counter, sequence):
    counter, sequence = tl.broadcast(counter, sequence)
    first, second, third, fourth = tl.philox(
        seed.to(tl.uint64),
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        sequence.to(tl.uint32),
        (sequence >> 32).to(tl.uint32),
    )
    words = tl.join(tl.join(first, third), tl.join(second, fourth))
    bits = tl.reshape(words, [words.shape[0] * 4])
    return tl.fma(bits.to(tl.uint32).to(tl.float32), 2.3283064365386963e-10, 1.1641532182693481e-10)
)"},
    {"uniform_numbers_of_rows", R"(
@triton.jit
def uniform_numbers_of_rows(seed, counter, sequence):
    counter, sequence = tl.broadcast(counter, sequence)
    first, second, third, fourth = tl.philox(
        seed.to(tl.uint64),
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        sequence.to(tl.uint32),
        (sequence >> 32).to(tl.uint32),
    )
    words = tl.join(tl.join(first, third), tl.join(second, fourth))
    bits = tl.reshape(words, [words.shape[0], words.shape[1] * 4])
    return tl.fma(bits.to(tl.uint32).to(tl.float32), 2.3283064365386963e-10, 1.1641532182693481e-10)
)"},
    {"times", R"(
@triton.jit
def times(a, b):
    return a * b
)"},
    {"log_add_exp", R"(
@triton.jit
def log_add_exp(a, b):
    gap = tl.where(a == b, 0.0, tl.abs(a - b))
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + libdevice.log1p(tl.exp(-gap))
)"},
};

}  // namespace

std::string helpers_text(const Needs& needs) {
  std::string text;
  for (const std::string& wanted : needs.helpers) {
    const auto* found = std::ranges::find(kHelpers, wanted, &Helper::name);
    check(found != std::end(kHelpers), "a kernel calls a helper that there is not: " + wanted);
    text += "\n";
    text += found->text;
  }
  return text;
}

}  // namespace oxy::backend::cuda
