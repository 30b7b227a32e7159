#include "backend/cuda/print/helpers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

struct Helper {
  std::string_view name, text;
  std::span<const std::string_view> calls = {};  // other helpers, which call none
};

constexpr std::string_view kOfRandomNumbers[] = {"philox_words", "unit_interval"};

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
    {"philox_words", R"(
@triton.jit
def philox_words(seed, counter, sequence):
    return tl.philox(
        seed.to(tl.uint64),
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        sequence.to(tl.uint32),
        (sequence >> 32).to(tl.uint32),
    )
)"},
    {"unit_interval", R"(
@triton.jit
def unit_interval(bits):
    return tl.fma(bits.to(tl.uint32).to(tl.float32), 2.3283064365386963e-10, 1.1641532182693481e-10)
)"},
    {"uniform_number", R"(
@triton.jit
def uniform_number(seed, counter, position):
    first, second, third, fourth = philox_words(seed, counter, position >> 2)
    word = position & 3
    return unit_interval(tl.where(word == 0, first, tl.where(word == 1, second, tl.where(word == 2, third, fourth))))
)",
     kOfRandomNumbers},
    {"uniform_numbers", R"(
@triton.jit
def uniform_numbers(seed, counter, sequence):
    counter, sequence = tl.broadcast(counter, sequence)
    first, second, third, fourth = philox_words(seed, counter, sequence)
    words = tl.join(tl.join(first, third), tl.join(second, fourth))
    return unit_interval(tl.reshape(words, [words.shape[0] * 4]))
)",
     kOfRandomNumbers},
    {"uniform_numbers_of_rows", R"(
@triton.jit
def uniform_numbers_of_rows(seed, counter, sequence):
    counter, sequence = tl.broadcast(counter, sequence)
    first, second, third, fourth = philox_words(seed, counter, sequence)
    words = tl.join(tl.join(first, third), tl.join(second, fourth))
    return unit_interval(tl.reshape(words, [words.shape[0], words.shape[1] * 4]))
)",
     kOfRandomNumbers},
    // Functions of results that are rounded to half precision (Inst::rounded_to). Their own errors are small
    // beside that rounding: test_half_functions.py compares all numbers. They are shorter than NVIDIA's, and
    // have no branches.
    {"tanh_for_half", R"(
@triton.jit
def tanh_for_half(x):
    size = tl.abs(x)
    far = 1.0 - libdevice.fast_dividef(2.0, 1.0 + tl.exp2(size * 2.88539))
    return tl.where(size < 0.04, x * tl.fma(x * x, -0.3333333, 1.0), libdevice.copysign(far, x))
)"},
    {"normal_cdf_for_half", R"(
@triton.jit
def normal_cdf_for_half(x):
    # For -x it is 2 to the power of -1 - x q(x), where q is a polynomial that was fitted on [0, 13.3].
    size = tl.abs(x)
    q = tl.fma(size, 2.168958e-09, -1.555182e-07)
    q = tl.fma(q, size, 4.889885e-06)
    q = tl.fma(q, size, -8.936744e-05)
    q = tl.fma(q, size, 1.065291e-03)
    q = tl.fma(q, size, -8.866995e-03)
    q = tl.fma(q, size, 5.446034e-02)
    q = tl.fma(q, size, 4.581537e-01)
    q = tl.fma(q, size, 1.151302e+00)
    tail = tl.exp2(tl.fma(q, -size, -1.0))
    return tl.where(x < 0, tail, 1.0 - tail)
)"},
    {"erf_for_half", R"(
@triton.jit
def erf_for_half(x):
    # 1 - erf(x) is 2 to the power of -x p(x), where p is a polynomial that was fitted on [0, 4.2].
    size = tl.abs(x)
    p = tl.fma(size, 1.228230e-05, -3.759642e-04)
    p = tl.fma(p, size, 4.644376e-03)
    p = tl.fma(p, size, -3.245477e-02)
    p = tl.fma(p, size, 1.506694e-01)
    p = tl.fma(p, size, 9.179788e-01)
    p = tl.fma(p, size, 1.627929)
    far = 1.0 - tl.exp2(p * -size)
    return tl.where(size < 0.04, x * tl.fma(x * x, -0.3761264, 1.128379), libdevice.copysign(far, x))
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
  const auto find = [](std::string_view name) -> const Helper& {
    const auto* found = std::ranges::find(kHelpers, name, &Helper::name);
    check(found != std::end(kHelpers), fmt::format("a kernel calls a helper that there is not: {}", name));
    return *found;
  };
  std::set<std::string_view> called(needs.helpers.begin(), needs.helpers.end());
  for (const std::string& name : needs.helpers) {
    const Helper& helper = find(name);
    called.insert(helper.calls.begin(), helper.calls.end());
  }
  std::string text;
  for (const std::string_view name : called) text += fmt::format("\n{}", find(name).text);
  return text;
}

}  // namespace oxy::backend::cuda
