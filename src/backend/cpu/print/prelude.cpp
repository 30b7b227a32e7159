#include "backend/cpu/print/prelude.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "backend/cpu/print/prelude_snippets.h"
#include "base/error.h"

namespace oxy::backend::cpu {

namespace {

struct TypeNames {
  std::string_view short_name, memory, scalar, vector;
};

constexpr TypeNames kTypes[] = {
    {"bool", "uint8_t", "bool", "i32v"},     {"u8", "uint8_t", "uint8_t", "u8v"},
    {"i8", "int8_t", "int8_t", "i8v"},       {"i16", "int16_t", "int16_t", "i16v"},
    {"i32", "int32_t", "int32_t", "i32v"},   {"i64", "int64_t", "int64_t", "i64v"},
    {"u16", "uint16_t", "uint16_t", "u16v"}, {"u32", "uint32_t", "uint32_t", "u32v"},
    {"u64", "uint64_t", "uint64_t", "u64v"}, {"f16", "uint16_t", "float", "f32v"},
    {"bf16", "uint16_t", "float", "f32v"},   {"f32", "float", "float", "f32v"},
    {"f64", "double", "double", "f64v"},
};

const TypeNames& names_of(DType dtype) {
  if (is_complex(dtype)) throw Unsupported("complex numbers in a generated kernel");
  return kTypes[static_cast<size_t>(dtype)];
}

// Functions over every plain type, written once with T for the type's short name, S for its scalar, V for its
// vector and M for the mask vector of its width.
struct Pattern {
  std::string_view prefix;
  std::string_view needs;
  std::string_view text;
};

constexpr Pattern kPatterns[] = {
    {"splat_", "", "static inline V splat_T(S x) { return x - V{}; }\n"},
    {"load_", "full",
     R"(static inline V load_T(const S* p, Full) { V v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline V load_T(const S* p, int64_t n) { V v = {}; __builtin_memcpy(&v, p, n * sizeof(S)); return v; }
)"},
    {"store_", "full",
     R"(static inline void store_T(S* p, V v, Full) { __builtin_memcpy(p, &v, sizeof v); }
static inline void store_T(S* p, V v, int64_t n) { __builtin_memcpy(p, &v, n * sizeof(S)); }
)"},
    {"load_strided_", "full",
     R"(static inline V load_strided_T(const S* p, int64_t stride, Full) {
  V v;
  for (int l = 0; l < W; ++l) v[l] = p[l * stride];
  return v;
}
static inline V load_strided_T(const S* p, int64_t stride, int64_t n) {
  S v[W] = {};
  for (int64_t l = 0; l < n; ++l) v[l] = p[l * stride];
  V r;
  __builtin_memcpy(&r, v, sizeof r);
  return r;
}
)"},
    {"store_strided_", "full",
     R"(static inline void store_strided_T(S* p, int64_t stride, V v, Full) {
  for (int l = 0; l < W; ++l) p[l * stride] = v[l];
}
static inline void store_strided_T(S* p, int64_t stride, V v, int64_t n) {
  S s[W];
  __builtin_memcpy(s, &v, sizeof v);
  for (int64_t l = 0; l < n; ++l) p[l * stride] = s[l];
}
)"},
    {"gather_", "lanes",
     R"(template <class Offset, class Count>
static inline V gather_T(const S* p, Offset offset, Count n) {
  S v[W] = {};
  for (int l = 0; l < lanes(n); ++l) v[l] = p[offset(l)];
  V r;
  __builtin_memcpy(&r, v, sizeof r);
  return r;
}
)"},
    {"gather_masked_", "lanes",
     R"(template <class Offset, class Count>
static inline V gather_masked_T(const S* p, Offset offset, i32v mask, V otherwise, Count n) {
  S v[W];
  __builtin_memcpy(v, &otherwise, sizeof v);
  int32_t m[W];
  __builtin_memcpy(m, &mask, sizeof m);
  for (int l = 0; l < lanes(n); ++l)
    if (m[l]) v[l] = p[offset(l)];
  V r;
  __builtin_memcpy(&r, v, sizeof r);
  return r;
}
)"},
    // Loads contiguous elements. Masks hide what is beyond an edge, so that most vectors are loaded whole.
    {"load_masked_", "load_T gather_masked_T all_lanes",
     R"(template <class Count>
static inline V load_masked_T(const S* p, i32v mask, V otherwise, Count n) {
  if (__builtin_expect(all_lanes(mask, n), 1)) return load_T(p, n);
  return gather_masked_T(p, [](int64_t l) { return l; }, mask, otherwise, n);
}
)"},
    {"scatter_", "lanes",
     R"(template <class Offset, class Count>
static inline void scatter_T(S* p, Offset offset, V v, Count n) {
  S s[W];
  __builtin_memcpy(s, &v, sizeof v);
  for (int l = 0; l < lanes(n); ++l) p[offset(l)] = s[l];
}
)"},
    {"scatter_add_", "lanes",
     R"(template <class Offset, class Count>
static inline void scatter_add_T(S* p, Offset offset, V v, Count n) {
  S s[W];
  __builtin_memcpy(s, &v, sizeof v);
  for (int l = 0; l < lanes(n); ++l) p[offset(l)] += s[l];
}
)"},
    {"select_", "", "static inline V select_T(i32v m, V a, V b) { return MASK(m) ? a : b; }\n"},
    {"first_lanes_", "full select_T lane_mask",
     R"(static inline V first_lanes_T(V v, V otherwise, Full) { return v; }
static inline V first_lanes_T(V v, V otherwise, int64_t n) { return select_T(lane_mask(n), v, otherwise); }
)"},
    {"maximum_", "", "static inline V maximum_T(V a, V b) { return a > b ? a : b; }\n"},
    {"minimum_", "", "static inline V minimum_T(V a, V b) { return a < b ? a : b; }\n"},
    {"larger_", "", "static inline V larger_T(V a, V b) { return a > b ? a : b; }\n"},
    {"smaller_", "", "static inline V smaller_T(V a, V b) { return a < b ? a : b; }\n"},
    {"abs_", "", "static inline V abs_T(V x) { return x < 0 ? -x : x; }\n"},
    {"sign_", "", "static inline V sign_T(V x) { return (V)((x < 0) - (x > 0)); }\n"},
    {"shift_left_", "lane_loop",
     R"(static inline V shift_left_T(V a, V b) {
  V r;
  for (int l = 0; l < W; ++l)
    r[l] = b[l] < 0 || b[l] >= (S)(8 * sizeof(S)) ? S(0) : (S)((uint64_t)a[l] << b[l]);
  return r;
}
)"},
    {"shift_right_", "lane_loop",
     R"(static inline V shift_right_T(V a, V b) {
  V r;
  for (int l = 0; l < W; ++l)
    r[l] = b[l] < 0 || b[l] >= (S)(8 * sizeof(S)) ? (S)(a[l] < 0 ? -1 : 0) : (S)(a[l] >> b[l]);
  return r;
}
)"},
    // A zero divisor is reported like an index error: eager then raises what it raises.
    {"trunc_div_", "lanes",
     R"(template <class Count>
static inline V trunc_div_T(V a, V b, int& error, Count n) {
  V r = {};
  for (int l = 0; l < lanes(n); ++l) {
    if (b[l] == 0) error = 1;
    else r[l] = b[l] == (S)-1 && (S)-1 < (S)1 ? (S)(0 - (uint64_t)a[l]) : (S)(a[l] / b[l]);
  }
  return r;
}
)"},
    {"fmod_", "lanes",
     R"(template <class Count>
static inline V fmod_T(V a, V b, int& error, Count n) {
  V r = {};
  for (int l = 0; l < lanes(n); ++l) {
    if (b[l] == 0) error = 1;
    else r[l] = b[l] == (S)-1 && (S)-1 < (S)1 ? S(0) : (S)(a[l] % b[l]);
  }
  return r;
}
)"},
    {"floor_div_", "trunc_div_T fmod_T",
     R"(template <class Count>
static inline V floor_div_T(V a, V b, int& error, Count n) {
  V q = trunc_div_T(a, b, error, n), r = fmod_T(a, b, error, n);
  return q + (V)((r != 0) & ((r < 0) ^ (b < 0)));
}
)"},
    {"mod_", "fmod_T",
     R"(template <class Count>
static inline V mod_T(V a, V b, int& error, Count n) {
  V r = fmod_T(a, b, error, n);
  return r + ((V)((r != 0) & ((r < 0) ^ (b < 0))) & b);
}
)"},
    // By one divisor. Indices that are wrapped this way are nearly all in range.
    {"mod_by_", "lanes select_T",
     R"(template <class Count>
static inline V mod_by_T(V a, S b, int& error, Count n) {
  int outside = 0;
  for (int l = 0; l < lanes(n); ++l) outside |= a[l] < 0 || a[l] >= b;
  if (!__builtin_expect(outside, 0)) return a;
  V r = {};
  if (b == 0) error = 1;
  if (b == 0 || (b == (S)-1 && (S)-1 < (S)1)) return r;
  for (int l = 0; l < lanes(n); ++l) {
    const S rest = (S)(a[l] % b);
    r[l] = rest != 0 && (rest < 0) != (b < 0) ? (S)(rest + b) : rest;
  }
  return r;
}
)"},
    {"pow_", "lane_loop",
     R"(static inline V pow_T(V a, V b) {
  V r;
  for (int l = 0; l < W; ++l) {
    S x = a[l], y = 1;
    int64_t n = (int64_t)b[l];
    if (n < 0) {
      y = x == 1 ? S(1) : x == (S)-1 ? (n % 2 ? (S)-1 : S(1)) : S(0);
    } else {
      for (; n; n >>= 1, x = (S)((uint64_t)x * (uint64_t)x))
        if (n & 1) y = (S)((uint64_t)y * (uint64_t)x);
    }
    r[l] = y;
  }
  return r;
}
)"},
    {"reduce_sum_", "", "static inline S reduce_sum_T(V v) {\nROTATE(v += ROTATED;)  return v[0];\n}\n"},
    {"reduce_prod_", "", "static inline S reduce_prod_T(V v) {\nROTATE(v *= ROTATED;)  return v[0];\n}\n"},
    {"reduce_larger_", "larger_T",
     "static inline S reduce_larger_T(V v) {\nROTATE(v = larger_T(v, ROTATED);)  return v[0];\n}\n"},
    {"reduce_smaller_", "smaller_T",
     "static inline S reduce_smaller_T(V v) {\nROTATE(v = smaller_T(v, ROTATED);)  return v[0];\n}\n"},
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Replaces the word `from` (which may be joined to others by '_').
std::string replaced_word(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos;) {
    bool whole = (at == 0 || !is_word(text[at - 1])) &&
                 (at + from.size() >= text.size() || !is_word(text[at + from.size()]));
    if (whole) text.replace(at, from.size(), to);
    at = text.find(from, at + (whole ? to.size() : from.size()));
  }
  return text;
}

// ROTATE(statement) becomes one statement a halving of the lanes, ROTATED being v turned by half.
std::string expand_rotations(std::string text, int lanes) {
  size_t at = text.find("ROTATE(");
  if (at == std::string::npos) return text;
  size_t end = text.find(";)", at);
  std::string statement = text.substr(at + 7, end + 1 - (at + 7));
  std::string lines;
  for (int half = lanes / 2; half >= 1; half /= 2) {
    std::string order;
    for (int l = 0; l < lanes; ++l) order += fmt::format(", {}", (l + half) % lanes);
    lines +=
        "  " + replaced(statement, "ROTATED", fmt::format("__builtin_shufflevector(v, v{})", order)) + "\n";
  }
  return text.substr(0, at) + lines + text.substr(end + 2);
}

// Interleaves runs of `run` elements of the low or high halves of each four elements of a and b.
std::string interleaved(int lanes, int run, bool is_high) {
  std::string order;
  for (int l = 0; l < lanes; ++l) {
    const int in_four = l % 4;
    const int source = (is_high ? 2 : 0) + (run == 2 ? in_four % 2 : in_four / 2);
    const bool is_b = run == 2 ? in_four >= 2 : in_four % 2 == 1;
    order += fmt::format(", {}", (is_b ? lanes : 0) + l - in_four + source);
  }
  return fmt::format("__builtin_shufflevector(a, b{})", order);
}

// Transposes the square matrix r[W] of W lanes: swaps ever smaller blocks, down to those of 4 by 4, which
// interleaving transposes with one instruction a register and step.
std::string transpose_text(int lanes) {
  std::string functions;
  std::string calls;
  for (int half = lanes / 2; half >= 4; half /= 2) {
    std::string low, high;
    for (int l = 0; l < lanes; ++l) {
      low += fmt::format(", {}", l & half ? lanes + l - half : l);
      high += fmt::format(", {}", l & half ? lanes + l : l + half);
    }
    functions += fmt::format(
        "static inline void swap_blocks_{}(f32v& a, f32v& b) {{\n  f32v c = __builtin_shufflevector(a, "
        "b{});\n"
        "  b = __builtin_shufflevector(a, b{});\n  a = c;\n}}\n",
        half, low, high);
    calls += " ";
    for (int i = 0; i < lanes; ++i)
      if (!(i & half)) calls += fmt::format(" swap_blocks_{}(r[{}], r[{}]);", half, i, i + half);
    calls += "\n";
  }
  for (const int run : {1, 2})
    for (const bool is_high : {false, true})
      functions +=
          fmt::format("static inline f32v {}_{}(f32v a, f32v b) {{ return {}; }}\n", is_high ? "high" : "low",
                      run == 1 ? "singles" : "pairs", interleaved(lanes, run, is_high));
  functions +=
      "static inline void transpose_fours(f32v* r) {\n"
      "  f32v a = low_singles(r[0], r[1]), b = high_singles(r[0], r[1]);\n"
      "  f32v c = low_singles(r[2], r[3]), d = high_singles(r[2], r[3]);\n"
      "  r[0] = low_pairs(a, c), r[1] = high_pairs(a, c), r[2] = low_pairs(b, d), r[3] = high_pairs(b, d);\n"
      "}\n";
  calls += " ";
  for (int i = 0; i < lanes; i += 4) calls += fmt::format(" transpose_fours(r + {});", i);
  return fmt::format("{}static inline void transpose_f32(f32v* r) {{\n{}\n}}\n", functions, calls);
}

std::string mask_of_width(DType dtype) {
  switch (item_size(dtype)) {
    case 4:
      return "(m)";
    case 8:
      return "__builtin_convertvector(m, i64v)";
    case 2:
      return "__builtin_convertvector(m, i16v)";
    default:
      return "__builtin_convertvector(m, i8v)";
  }
}

struct Writer {
  int lanes;
  const Target& target;
  std::set<std::string> done;
  std::string text;

  void add_all(std::string_view needs, std::string_view type) {
    while (!needs.empty()) {
      size_t space = needs.find(' ');
      add(replaced_word(std::string(needs.substr(0, space)), "T", type));
      needs = space == std::string_view::npos ? "" : needs.substr(space + 1);
    }
  }

  bool add_snippet(const std::string& name) {
    const Snippet* best = nullptr;
    for (const Snippet& snippet : snippets())
      if (snippet.name == name && (snippet.lanes == 0 || snippet.lanes == lanes) &&
          (!snippet.needs_isa || snippet.isa == target.isa) && (!best || snippet.lanes != 0))
        best = &snippet;
    if (!best) return false;
    add_all(best->needs, "");
    text +=
        best->text == "TRANSPOSE" ? transpose_text(lanes) : expand_rotations(std::string(best->text), lanes);
    return true;
  }

  bool add_pattern(const std::string& name) {
    for (const Pattern& pattern : kPatterns) {
      if (name.size() <= pattern.prefix.size() || name.compare(0, pattern.prefix.size(), pattern.prefix) != 0)
        continue;
      std::string type = name.substr(pattern.prefix.size());
      for (size_t k = 0; k < std::size(kTypes); ++k) {
        auto dtype = static_cast<DType>(k);
        if (kTypes[k].short_name != type || dtype == DType::Bool || kTypes[k].memory != kTypes[k].scalar)
          continue;
        add_all(pattern.needs, type);
        std::string body = replaced_word(std::string(pattern.text), "T", type);
        body = replaced_word(body, "V", kTypes[k].vector);
        body = replaced_word(body, "S", kTypes[k].scalar);
        body = replaced(body, "MASK(m)", mask_of_width(dtype));
        text += expand_rotations(body, lanes);
        return true;
      }
    }
    return false;
  }

  void add(const std::string& name) {
    if (!done.insert(name).second) return;
    check(add_snippet(name) || add_pattern(name), fmt::format("no prelude function is called {}", name));
  }
};

int element_bytes(std::string_view vector) {
  for (size_t k = 0; k < std::size(kTypes); ++k)
    if (kTypes[k].vector == vector && kTypes[k].memory == kTypes[k].scalar)
      return static_cast<int>(item_size(static_cast<DType>(k)));
  return 4;
}

std::string_view element_type(std::string_view vector) {
  for (const TypeNames& type : kTypes)
    if (type.vector == vector && type.memory == type.scalar) return type.scalar;
  return "int32_t";
}

}  // namespace

std::string_view short_name(DType dtype) {
  return names_of(dtype).short_name;
}
std::string_view memory_type(DType dtype) {
  return names_of(dtype).memory;
}
std::string_view scalar_type(DType dtype) {
  return names_of(dtype).scalar;
}
std::string_view vector_type(DType dtype) {
  return names_of(dtype).vector;
}

std::string prelude(const std::set<std::string>& functions, int lanes, const Target& target) {
  Writer writer{lanes, target, {}, {}};
  for (const std::string& function : functions) writer.add(function);
  // A kernel without partial vectors leaves their overloads unused.
  std::string out =
      "#pragma GCC diagnostic ignored \"-Wunused-function\"\ntypedef __INT8_TYPE__ int8_t;\ntypedef "
      "__INT16_TYPE__ int16_t;\ntypedef __INT32_TYPE__ int32_t;\n"
      "typedef __INT64_TYPE__ int64_t;\ntypedef __UINT8_TYPE__ uint8_t;\ntypedef __UINT16_TYPE__ uint16_t;\n"
      "typedef __UINT32_TYPE__ uint32_t;\ntypedef __UINT64_TYPE__ uint64_t;\n";
  out += fmt::format("enum : int {{ W = {} }};\n", lanes);
  for (std::string_view vector :
       {"f32v", "f64v", "i8v", "i16v", "i32v", "i64v", "u8v", "u16v", "u32v", "u64v"})
    out += fmt::format("typedef {} {} __attribute__((vector_size({})));\n", element_type(vector), vector,
                       element_bytes(vector) * lanes);
  return out + writer.text;
}

}  // namespace oxy::backend::cpu
