#include "backend/cpu/print/prelude_snippets.h"

namespace oxy::backend::cpu {

namespace {

// A function of one double by the C library, lane by lane; the float32 one goes through double.
#define OXY_LIBM_UNARY(NAME, LIBRARY)                                                     \
  {#NAME "_f64", "",                                                                      \
   "extern \"C\" double " #LIBRARY                                                        \
   "(double);\n"                                                                          \
   "__attribute__((noinline)) static f64v " #NAME                                         \
   "_f64(f64v x) {\n"                                                                     \
   "  for (int l = 0; l < W; ++l) x[l] = " #LIBRARY "(x[l]);\n  return x;\n}\n"},         \
      {#NAME "_f32", #NAME "_f64",                                                        \
       "static inline f32v " #NAME "_f32(f32v x) { return __builtin_convertvector(" #NAME \
       "_f64(__builtin_convertvector(x, f64v)), f32v); }\n"}

#define OXY_LIBM_BINARY(NAME, LIBRARY)                                                               \
  {#NAME "_f64", "",                                                                                 \
   "extern \"C\" double " #LIBRARY                                                                   \
   "(double, double);\n"                                                                             \
   "__attribute__((noinline)) static f64v " #NAME                                                    \
   "_f64(f64v x, f64v y) {\n"                                                                        \
   "  for (int l = 0; l < W; ++l) x[l] = " #LIBRARY "(x[l], y[l]);\n  return x;\n}\n"},              \
      {#NAME "_f32", #NAME "_f64",                                                                   \
       "static inline f32v " #NAME "_f32(f32v x, f32v y) {\n  return __builtin_convertvector(" #NAME \
       "_f64(__builtin_convertvector(x, f64v), __builtin_convertvector(y, f64v)), f32v);\n}\n"}

// A rounding function that clang has on vectors.
#define OXY_ROUNDING(NAME, CLANG, F32, F64)                                                                  \
  {#NAME "_f32", "",                                                                                         \
   "static inline f32v " #NAME "_f32(f32v x) {\n#ifdef __clang__\n  return __builtin_elementwise_" CLANG     \
   "(x);\n#else\n  for (int l = 0; l < W; ++l) x[l] = __builtin_" F32 "(x[l]);\n  return x;\n#endif\n}\n"},  \
      {#NAME "_f64", "",                                                                                     \
       "static inline f64v " #NAME "_f64(f64v x) {\n#ifdef __clang__\n  return __builtin_elementwise_" CLANG \
       "(x);\n#else\n  for (int l = 0; l < W; ++l) x[l] = __builtin_" F64                                    \
       "(x[l]);\n  return x;\n#endif\n}\n"}

constexpr Snippet kSnippets[] = {
    {"full", "", "struct Full {};  // all W lanes\n"},
    {"lane_loop", "", ""},
    {"lanes", "full",
     "static inline int lanes(Full) { return W; }\nstatic inline int lanes(int64_t n) { return (int)n; }\n"},
    // Of places in a tensor whose size may be 0: a mask hides them all then, but they are computed.
    {"floor_divide", "",
     R"(static inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
)"},
    {"floor_modulo", "",
     R"(static inline int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t r = a % b;
  return ((r != 0) & ((r < 0) != (b < 0))) ? r + b : r;
}
)"},
    // Of a position that was moved: it is nearly always in the range or in one beside it.
    {"near_modulo", "floor_modulo",
     R"(static inline int64_t near_modulo(int64_t a, int64_t b) {
  if (__builtin_expect((uint64_t)a < (uint64_t)b, 1)) return a;
  if (__builtin_expect((uint64_t)(a + b) < (uint64_t)b, 1)) return a + b;
  if (__builtin_expect((uint64_t)(a - b) < (uint64_t)b, 1)) return a - b;
  return floor_modulo(a, b);
}
)"},
    // Hides from the compiler how the pointer was computed, unless `is_known`.
    {"row_pointer", "",
     R"(template <bool is_known, class T>
static inline T* row_pointer(T* p) {
  if (!is_known) asm("" : "+r"(p));
  return p;
}
)"},
    {"least", "", "static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }\n"},
    {"greatest", "", "static inline int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }\n"},
    {"bind_index", "",
     R"(static inline int64_t bind_index(int64_t i, int64_t size, int& error) {
  if ((uint64_t)i < (uint64_t)size) return i;
  error = 1;
  return 0;
}
)"},
    // A branch, as nearly all vectors hold valid indices alone: those need no mask.
    {"bind_indices", "lanes iota any_lane",
     R"(template <class Count>
static inline i64v bind_indices(i64v i, int64_t size, int& error, Count n) {
  const i64v asked = iota() < int64_t(lanes(n));
  if (!__builtin_expect(any_lane(((u64v)i >= (uint64_t)size) & asked), 0)) return i;
  error = 1;
  return i64v{};
}
)"},
    {"wrap_index", "",
     "static inline int64_t wrap_index(int64_t i, int64_t size) { return i + (i < 0 ? size : 0); }\n"},
    {"wrap_indices", "",
     "static inline i64v wrap_indices(i64v i, int64_t size) { return i + ((i < int64_t(0)) & size); }\n"},
    {"any_lane", "",
     R"(static inline bool any_lane(i64v v) {
#ifdef __clang__
  return __builtin_reduce_or(v) != 0;
#else
  int64_t any = 0;
  for (int l = 0; l < W; ++l) any |= v[l];
  return any != 0;
#endif
}
)"},
    {"each_lane", "",
     R"(template <class Position>
static inline i64v each_lane(Position position) {
  int64_t v[W];
  for (int l = 0; l < W; ++l) v[l] = position(l);
  i64v r;
  __builtin_memcpy(&r, v, sizeof r);
  return r;
}
)"},
    {"load_masked_f32", "full",
     R"(static inline f32v load_masked_f32(const float* p, i32v mask, f32v otherwise, Full) {
  return (f32v)__builtin_ia32_loadups512_mask(p, otherwise, __builtin_ia32_cvtd2mask512(mask));
}
static inline f32v load_masked_f32(const float* p, i32v mask, f32v otherwise, int64_t n) {
  uint16_t lanes = (uint16_t)(__builtin_ia32_cvtd2mask512(mask) & ((1u << n) - 1u));
  return (f32v)__builtin_ia32_loadups512_mask(p, otherwise, lanes);
}
)",
     16, true, Isa::Avx512},
    {"load_masked_f32", "full lane_mask",
     R"(static inline f32v load_masked_f32(const float* p, i32v mask, f32v otherwise, Full) {
  const f32v v = (f32v)__builtin_ia32_maskloadps256((const f32v*)p, mask);
  return mask ? v : otherwise;
}
static inline f32v load_masked_f32(const float* p, i32v mask, f32v otherwise, int64_t n) {
  return load_masked_f32(p, mask & lane_mask(n), otherwise, Full{});
}
)",
     8, true, Isa::Avx2},
    {"all_lanes", "full",
     R"(static inline bool all_lanes(i32v mask, Full) {
#ifdef __clang__
  return __builtin_reduce_and(mask) != 0;
#else
  int32_t all = -1;
  for (int l = 0; l < W; ++l) all &= mask[l];
  return all != 0;
#endif
}
static inline bool all_lanes(i32v mask, int64_t n) {
  int32_t all = -1;
  for (int64_t l = 0; l < n; ++l) all &= mask[l];
  return all != 0;
}
)"},
    {"iota", "",
     R"(static inline i64v iota() {
  i64v v;
  for (int l = 0; l < W; ++l) v[l] = l;
  return v;
}
)"},
    {"lane_mask", "",
     R"(static inline i32v lane_mask(int64_t n) {
  i32v v;
  for (int l = 0; l < W; ++l) v[l] = l;
  return v < (i32v{} + (int32_t)n);
}
)"},
    {"splat_bool", "", "static inline i32v splat_bool(bool x) { return i32v{} - (int32_t)x; }\n"},

    // --- float to integer: what does not fit gives the least integer, as x86's instructions do; a conversion
    // without the test is undefined, and folded to anything where the operand is known
    {"integer_of", "",
     R"(template <class To, class From>
static inline To integer_of(From x) {
  const From limit = From{} + (sizeof(To) == 4 * W ? 0x1p31f : 0x1p63f);
  return __builtin_convertvector((x < 0 ? -x : x) < limit ? x : -limit, To);
}
)"},
    {"one_integer_of", "",
     R"(template <class To>
static inline To one_integer_of(double x) {
  const double limit = sizeof(To) == 4 ? 0x1p31 : 0x1p63;
  return (To)(x > -limit && x < limit ? x : -limit);
}
)"},

    // --- memory
    {"load_bool", "load_u8",
     "template <class Count>\nstatic inline i32v load_bool(const uint8_t* p, Count n) {\n"
     "  return __builtin_convertvector(load_u8(p, n) != 0, i32v);\n}\n"},
    {"store_bool", "store_u8",
     "template <class Count>\nstatic inline void store_bool(uint8_t* p, i32v v, Count n) {\n"
     "  store_u8(p, __builtin_convertvector(-v, u8v), n);\n}\n"},
    {"load_strided_bool", "load_strided_u8",
     "template <class Count>\nstatic inline i32v load_strided_bool(const uint8_t* p, int64_t stride, Count "
     "n) {\n"
     "  return __builtin_convertvector(load_strided_u8(p, stride, n) != 0, i32v);\n}\n"},
    {"store_strided_bool", "store_strided_u8",
     "template <class Count>\nstatic inline void store_strided_bool(uint8_t* p, int64_t stride, i32v v, "
     "Count n) {\n"
     "  store_strided_u8(p, stride, __builtin_convertvector(-v, u8v), n);\n}\n"},
    {"gather_bool", "gather_u8",
     "template <class Offset, class Count>\nstatic inline i32v gather_bool(const uint8_t* p, Offset offset, "
     "Count n) {\n"
     "  return __builtin_convertvector(gather_u8(p, offset, n) != 0, i32v);\n}\n"},
    {"gather_masked_bool", "gather_masked_u8",
     "template <class Offset, class Count>\n"
     "static inline i32v gather_masked_bool(const uint8_t* p, Offset offset, i32v mask, i32v otherwise, "
     "Count n) {\n"
     "  u8v v = gather_masked_u8(p, offset, mask, __builtin_convertvector(-otherwise, u8v), n);\n"
     "  return __builtin_convertvector(v != 0, i32v);\n}\n"},
    {"load_masked_bool", "load_masked_u8",
     "template <class Count>\n"
     "static inline i32v load_masked_bool(const uint8_t* p, i32v mask, i32v otherwise, Count n) {\n"
     "  u8v v = load_masked_u8(p, mask, __builtin_convertvector(-otherwise, u8v), n);\n"
     "  return __builtin_convertvector(v != 0, i32v);\n}\n"},
    {"scatter_bool", "scatter_u8",
     "template <class Offset, class Count>\nstatic inline void scatter_bool(uint8_t* p, Offset offset, i32v "
     "v, Count n) {\n"
     "  scatter_u8(p, offset, __builtin_convertvector(-v, u8v), n);\n}\n"},
    {"widen_bf16", "",
     "static inline f32v widen_bf16(u16v v) { return (f32v)(__builtin_convertvector(v, u32v) << 16); }\n"},
    {"narrow_bf16", "",
     R"(static inline u16v narrow_bf16(f32v v) {  // to nearest even
  u32v bits = (u32v)v;
  u32v rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return __builtin_convertvector(v != v ? u32v{} + 0x7fc0u : rounded, u16v);
}
)"},
    {"widen_f16", "",
     R"(static inline f32v widen_f16(u16v v) {
  u32v h = __builtin_convertvector(v, u32v);
  u32v sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  f32v normal = (f32v)((rest << 13) + (112u << 23));
  f32v special = (f32v)((rest << 13) | 0x7f800000u);
  f32v small = __builtin_convertvector((i32v)rest, f32v) * 0x1p-24f;
  f32v r = rest >= 0x7c00u ? special : rest < 0x400u ? small : normal;
  return (f32v)((u32v)r | sign);
}
)"},
    {"narrow_f16", "",
     R"(static inline u16v narrow_f16(f32v v) {  // to nearest even
  u32v bits = (u32v)v, sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  u32v normal = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // 0.5 has the float16 denormals' unit in its last place.
  u32v small = (u32v)((f32v)rest + 0.5f) - 0x3f000000u;
  u32v r = rest < (113u << 23) ? small : normal;
  r = rest >= 0x477ff000u ? u32v{} + 0x7c00u : r;
  r = rest > 0x7f800000u ? u32v{} + 0x7e00u : r;
  return __builtin_convertvector(r | sign, u16v);
}
)"},
#define OXY_HALF(NAME)                                                                                  \
  {"load_" NAME, "load_u16 widen_" NAME,                                                                \
   "template <class Count>\nstatic inline f32v load_" NAME                                              \
   "(const uint16_t* p, Count n) { return widen_" NAME "(load_u16(p, n)); }\n"},                        \
      {"store_" NAME, "store_u16 narrow_" NAME,                                                         \
       "template <class Count>\nstatic inline void store_" NAME                                         \
       "(uint16_t* p, f32v v, Count n) { store_u16(p, narrow_" NAME "(v), n); }\n"},                    \
      {"load_strided_" NAME, "load_strided_u16 widen_" NAME,                                            \
       "template <class Count>\nstatic inline f32v load_strided_" NAME                                  \
       "(const uint16_t* p, int64_t stride, Count n) {\n  return widen_" NAME                           \
       "(load_strided_u16(p, stride, n));\n}\n"},                                                       \
      {"store_strided_" NAME, "store_strided_u16 narrow_" NAME,                                         \
       "template <class Count>\nstatic inline void store_strided_" NAME                                 \
       "(uint16_t* p, int64_t stride, f32v v, Count n) {\n  store_strided_u16(p, stride, narrow_" NAME  \
       "(v), n);\n}\n"},                                                                                \
      {"gather_" NAME, "gather_u16 widen_" NAME,                                                        \
       "template <class Offset, class Count>\nstatic inline f32v gather_" NAME                          \
       "(const uint16_t* p, Offset offset, Count n) {\n  return widen_" NAME                            \
       "(gather_u16(p, offset, n));\n}\n"},                                                             \
      {"gather_masked_" NAME, "gather_masked_u16 widen_" NAME " narrow_" NAME,                          \
       "template <class Offset, class Count>\nstatic inline f32v gather_masked_" NAME                   \
       "(const uint16_t* p, Offset offset, i32v mask, f32v otherwise, Count n) {\n  return widen_" NAME \
       "(gather_masked_u16(p, offset, mask, narrow_" NAME "(otherwise), n));\n}\n"},                    \
      {"load_masked_" NAME, "load_masked_u16 widen_" NAME " narrow_" NAME,                              \
       "template <class Count>\nstatic inline f32v load_masked_" NAME                                   \
       "(const uint16_t* p, i32v mask, f32v otherwise, Count n) {\n  return widen_" NAME                \
       "(load_masked_u16(p, mask, narrow_" NAME "(otherwise), n));\n}\n"},                              \
      {"scatter_" NAME, "scatter_u16 narrow_" NAME,                                                     \
       "template <class Offset, class Count>\nstatic inline void scatter_" NAME                         \
       "(uint16_t* p, Offset offset, f32v v, Count n) {\n  scatter_u16(p, offset, narrow_" NAME         \
       "(v), n);\n}\n"},                                                                                \
      {"scatter_add_" NAME, "lanes load_u16 store_u16 widen_" NAME " narrow_" NAME,                     \
       "template <class Offset, class Count>\nstatic inline void scatter_add_" NAME                     \
       "(uint16_t* p, Offset offset, f32v v, Count n) {\n  for (int l = 0; l < lanes(n); ++l) {\n"      \
       "    f32v x = widen_" NAME                                                                       \
       "(load_u16(p + offset(l), 1));\n    x[0] += v[l];\n"                                             \
       "    store_u16(p + offset(l), narrow_" NAME "(x), 1);\n  }\n}\n"},                               \
      {"round_" NAME, "widen_" NAME " narrow_" NAME,                                                    \
       "static inline f32v round_" NAME "(f32v v) { return widen_" NAME "(narrow_" NAME "(v)); }\n"}
    OXY_HALF("bf16"),
    OXY_HALF("f16"),
#undef OXY_HALF
    {"load_f32", "full",
     R"(static inline f32v load_f32(const float* p, Full) { f32v v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline f32v load_f32(const float* p, int64_t n) {
  return (f32v)__builtin_ia32_loadups512_mask(p, f32v{}, (uint16_t)((1u << n) - 1u));
}
)",
     16, true, Isa::Avx512},
    {"store_f32", "full",
     R"(static inline void store_f32(float* p, f32v v, Full) { __builtin_memcpy(p, &v, sizeof v); }
static inline void store_f32(float* p, f32v v, int64_t n) {
  __builtin_ia32_storeups512_mask(p, v, (uint16_t)((1u << n) - 1u));
}
)",
     16, true, Isa::Avx512},

    {"transpose_f32", "", "TRANSPOSE"},

    // tile[j] = element j of each lane's run of `rows` elements
    {"load_tile_f32", "full lanes load_f32 transpose_f32",
     R"(static inline void load_tile_f32(f32v* tile, const float* p, int64_t stride, Full, Full) {
  f32v r[W];
  for (int l = 0; l < W; ++l, p += stride) r[l] = load_f32(p, Full{});
  if (stride % 256 != 0)  // rows that are whole KiB apart drive each other out of the cache
    for (int l = 0; l < W; ++l, p += stride) __builtin_prefetch(p);
  transpose_f32(r);
  for (int l = 0; l < W; ++l) tile[l] = r[l];
}
__attribute__((noinline)) static void load_part_of_tile_f32(f32v* tile, const float* p, int64_t stride, int64_t rows, int64_t n) {
  for (int l = 0; l < W; ++l) tile[l] = f32v{};
  for (int64_t l = 0; l < n; ++l) tile[l] = rows == W ? load_f32(p + l * stride, Full{}) : load_f32(p + l * stride, rows);
  transpose_f32(tile);
}
template <class Rows, class Lanes>
static inline void load_tile_f32(f32v* tile, const float* p, int64_t stride, Rows rows, Lanes n) {
  load_part_of_tile_f32(tile, p, stride, lanes(rows), lanes(n));
}
)"},

    // --- truth values
    {"select_bool", "",
     "static inline i32v select_bool(i32v m, i32v a, i32v b) { return (m & a) | (~m & b); }\n"},
    {"first_lanes_bool", "full select_bool lane_mask",
     R"(static inline i32v first_lanes_bool(i32v v, i32v, Full) { return v; }
static inline i32v first_lanes_bool(i32v v, i32v otherwise, int64_t n) { return select_bool(lane_mask(n), v, otherwise); }
)"},
    {"reduce_any", "", "static inline bool reduce_any(i32v v) {\nROTATE(v |= ROTATED;)  return v[0];\n}\n"},
    {"reduce_all", "", "static inline bool reduce_all(i32v v) {\nROTATE(v &= ROTATED;)  return v[0];\n}\n"},

    // --- arithmetic
    {"fma_f32", "",
     R"(static inline f32v fma_f32(f32v a, f32v b, f32v c) {
#ifdef __clang__
  return __builtin_elementwise_fma(a, b, c);
#else
  return (f32v)__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#endif
}
)",
     16, true, Isa::Avx512},
    {"fma_f32", "",
     R"(static inline f32v fma_f32(f32v a, f32v b, f32v c) {
#ifdef __clang__
  return __builtin_elementwise_fma(a, b, c);
#else
  return (f32v)__builtin_ia32_vfmaddps256(a, b, c);
#endif
}
)",
     8, true, Isa::Avx2},
    {"fma_f32", "",
     R"(static inline f32v fma_f32(f32v a, f32v b, f32v c) {
#ifdef __clang__
  return __builtin_elementwise_fma(a, b, c);
#else
  for (int l = 0; l < W; ++l) a[l] = __builtin_fmaf(a[l], b[l], c[l]);
  return a;
#endif
}
)"},
    {"fma_f64", "",
     R"(static inline f64v fma_f64(f64v a, f64v b, f64v c) {
#ifdef __clang__
  return __builtin_elementwise_fma(a, b, c);
#else
  for (int l = 0; l < W; ++l) a[l] = __builtin_fma(a[l], b[l], c[l]);
  return a;
#endif
}
)"},
    {"maximum_f32", "",
     "static inline f32v maximum_f32(f32v a, f32v b) { return ((a > b) | (a != a)) ? a : b; }\n"},
    {"minimum_f32", "",
     "static inline f32v minimum_f32(f32v a, f32v b) { return ((a < b) | (a != a)) ? a : b; }\n"},
    {"maximum_f64", "",
     "static inline f64v maximum_f64(f64v a, f64v b) { return ((a > b) | (a != a)) ? a : b; }\n"},
    {"minimum_f64", "",
     "static inline f64v minimum_f64(f64v a, f64v b) { return ((a < b) | (a != a)) ? a : b; }\n"},
    {"maximum_bool", "", "static inline i32v maximum_bool(i32v a, i32v b) { return a | b; }\n"},
    {"minimum_bool", "", "static inline i32v minimum_bool(i32v a, i32v b) { return a & b; }\n"},
    {"abs_f32", "", "static inline f32v abs_f32(f32v x) { return (f32v)((u32v)x & 0x7fffffffu); }\n"},
    {"abs_f64", "",
     "static inline f64v abs_f64(f64v x) { return (f64v)((u64v)x & 0x7fffffffffffffffull); }\n"},
    {"sign_f32", "",
     "static inline f32v sign_f32(f32v x) { return __builtin_convertvector((x < 0) - (x > 0), f32v); }\n"},
    {"sign_f64", "",
     "static inline f64v sign_f64(f64v x) { return __builtin_convertvector((x < 0) - (x > 0), f64v); }\n"},
    {"copysign_f32", "",
     "static inline f32v copysign_f32(f32v x, f32v s) {\n"
     "  return (f32v)(((u32v)x & 0x7fffffffu) | ((u32v)s & 0x80000000u));\n}\n"},
    OXY_ROUNDING(floor, "floor", "floorf", "floor"),
    OXY_ROUNDING(ceil, "ceil", "ceilf", "ceil"),
    OXY_ROUNDING(trunc, "trunc", "truncf", "trunc"),
    OXY_ROUNDING(round, "roundeven", "rintf", "rint"),
    OXY_ROUNDING(sqrt, "sqrt", "sqrtf", "sqrt"),
    OXY_LIBM_BINARY(fmod, fmod),
    OXY_LIBM_BINARY(atan2, atan2),
    OXY_LIBM_BINARY(pow, pow),
    {"mod_f64", "fmod_f64",
     R"(static inline f64v mod_f64(f64v a, f64v b) {
  f64v r = fmod_f64(a, b);
  return ((r != 0) & ((r < 0) ^ (b < 0))) ? r + b : r;
}
)"},
    {"floor_div_f64", "fmod_f64 floor_f64",
     R"(static inline f64v floor_div_f64(f64v a, f64v b) {
  f64v r = fmod_f64(a, b), q = (a - r) / b, whole = a / b;
  q = ((r != 0) & ((r < 0) ^ (b < 0))) ? q - 1.0 : q;
  f64v f = floor_f64(q);
  f = q - f > 0.5 ? f + 1.0 : f;
  f64v zero = (f64v)((u64v)whole & 0x8000000000000000ull);
  return b == 0 ? whole : q == 0 ? zero : f;
}
)"},
    // In float32 the same steps: the remainder is exact, the quotient rounds as eager's does.
    {"mod_f32", "fmod_f32",
     R"(static inline f32v mod_f32(f32v a, f32v b) {
  f32v r = fmod_f32(a, b);
  return ((r != 0) & ((r < 0) ^ (b < 0))) ? r + b : r;
}
)"},
    {"floor_div_f32", "fmod_f32 floor_f32",
     R"(static inline f32v floor_div_f32(f32v a, f32v b) {
  f32v r = fmod_f32(a, b), q = (a - r) / b, whole = a / b;
  q = ((r != 0) & ((r < 0) ^ (b < 0))) ? q - 1.0f : q;
  f32v f = floor_f32(q);
  f = q - f > 0.5f ? f + 1.0f : f;
  f32v zero = (f32v)((u32v)whole & 0x80000000u);
  return b == 0 ? whole : q == 0 ? zero : f;
}
)"},
    {"trunc_div_f32", "trunc_f32",
     "static inline f32v trunc_div_f32(f32v a, f32v b) { return trunc_f32(a / b); }\n"},
    {"trunc_div_f64", "trunc_f64",
     "static inline f64v trunc_div_f64(f64v a, f64v b) { return trunc_f64(a / b); }\n"},

    // --- float32 mathematics: polynomials, at most about 2 units in the last place off
    {"exp_reduced_f32", "fma_f32",
     R"(struct Reduced { f32v r; i32v n; };  // x = r + n ln 2
static inline Reduced exp_reduced_f32(f32v x) {
  f32v t = fma_f32(x, f32v{} + 0x1.715476p+0f, f32v{} + 0x1.8p23f), n = t - 0x1.8p23f;
  f32v r = fma_f32(n, f32v{} - 0x1.62e400p-1f, x);
  return {fma_f32(n, f32v{} - 0x1.7f7d1cp-20f, r), (i32v)t - 0x4b400000};
}
)"},
    {"power_of_two_f32", "",
     "static inline f32v power_of_two_f32(i32v n) { return (f32v)((n + 127) << 23); }\n"},
    {"exp_f32", "exp_reduced_f32 power_of_two_f32",
     R"(static inline f32v exp_f32(f32v x) {
  x = x > 89.0f ? f32v{} + 89.0f : x;
  x = x < -104.0f ? f32v{} - 104.0f : x;
  Reduced a = exp_reduced_f32(x);
  f32v p = fma_f32(a.r, f32v{} + 1.3951717410236597e-3f, f32v{} + 8.369598537683487e-3f);
  p = fma_f32(a.r, p, f32v{} + 4.16661873459816e-2f);
  p = fma_f32(a.r, p, f32v{} + 0.16666512191295624f);
  p = fma_f32(a.r, p, f32v{} + 0.5f);
  p = fma_f32(a.r * a.r, p, a.r) + 1.0f;
  i32v half = a.n >> 1;
  return p * power_of_two_f32(half) * power_of_two_f32(a.n - half);
}
)"},
    {"exp_f32", "fma_f32",
     R"(static inline f32v exp_f32(f32v x) {
  x = x > 89.0f ? f32v{} + 89.0f : x;
  x = x < -104.0f ? f32v{} - 104.0f : x;
  f32v t = fma_f32(x, f32v{} + 0x1.715476p+0f, f32v{} + 0x1.8p23f), n = t - 0x1.8p23f;
  f32v r = fma_f32(n, f32v{} - 0x1.62e400p-1f, x);
  r = fma_f32(n, f32v{} - 0x1.7f7d1cp-20f, r);
  f32v p = fma_f32(r, f32v{} + 1.3951717410236597e-3f, f32v{} + 8.369598537683487e-3f);
  p = fma_f32(r, p, f32v{} + 4.16661873459816e-2f);
  p = fma_f32(r, p, f32v{} + 0.16666512191295624f);
  p = fma_f32(r, p, f32v{} + 0.5f);
  p = fma_f32(r * r, p, r) + 1.0f;
  return (f32v)__builtin_ia32_scalefps512_mask(p, n, f32v{}, -1, 4);
}
)",
     16, true, Isa::Avx512},
    {"exp2_f32", "fma_f32 power_of_two_f32",
     R"(static inline f32v exp2_f32(f32v x) {
  x = x > 130.0f ? f32v{} + 130.0f : x;
  x = x < -152.0f ? f32v{} - 152.0f : x;
  f32v t = x + 0x1.8p23f;
  f32v r = (x - (t - 0x1.8p23f)) * 0x1.62e430p-1f;
  i32v n = (i32v)t - 0x4b400000, half = n >> 1;
  f32v p = fma_f32(r, f32v{} + 1.3951717410236597e-3f, f32v{} + 8.369598537683487e-3f);
  p = fma_f32(r, p, f32v{} + 4.16661873459816e-2f);
  p = fma_f32(r, p, f32v{} + 0.16666512191295624f);
  p = fma_f32(r, p, f32v{} + 0.5f);
  p = fma_f32(r * r, p, r) + 1.0f;
  return p * power_of_two_f32(half) * power_of_two_f32(n - half);
}
)"},
    {"expm1_f32", "exp_reduced_f32 power_of_two_f32",
     R"(static inline f32v expm1_f32(f32v x) {
  f32v y = x > 89.0f ? f32v{} + 89.0f : x;
  y = y < -20.0f ? f32v{} - 20.0f : y;
  Reduced a = exp_reduced_f32(y);
  f32v p = fma_f32(a.r, f32v{} + 1.9911053823307157e-4f, f32v{} + 1.3934201560914516e-3f);
  p = fma_f32(a.r, p, f32v{} + 8.333279751241207e-3f);
  p = fma_f32(a.r, p, f32v{} + 4.166647419333458e-2f);
  p = fma_f32(a.r, p, f32v{} + 0.1666666716337204f);
  p = fma_f32(a.r, p, f32v{} + 0.5f);
  p = fma_f32(a.r * a.r, p, a.r);
  i32v half = a.n >> 1;
  f32v s = power_of_two_f32(half), t = power_of_two_f32(a.n - half);
  f32v big = (p * s + s) * t, scale = power_of_two_f32(a.n > 127 ? i32v{} : a.n);
  f32v small = fma_f32(p, scale, scale - 1.0f);
  f32v r = a.n > 60 ? big : small;
  return x == 0.0f ? x : r;
}
)"},
    // log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], and the exponent
    {"log_reduced_f32", "fma_f32",
     R"(struct LogReduced { f32v f, e; };  // x = (1 + f) 2^e
static inline LogReduced log_reduced_f32(f32v x) {
  i32v tiny = x < 0x1p-126f;
  x = tiny ? x * 0x1p23f : x;
  i32v bits = (i32v)x - 0x3f3504f3, e = bits >> 23;
  f32v m = (f32v)((bits & 0x7fffff) + 0x3f3504f3);
  return {m - 1.0f, __builtin_convertvector(e + (tiny & -23), f32v)};
}
static inline f32v log_tail_f32(f32v f) {  // (log(1 + f) - f) / f^2
  f32v p = fma_f32(f, f32v{} - 7.657701522111893e-2f, f32v{} + 0.12796710431575775f);
  p = fma_f32(f, p, f32v{} - 0.13168205320835114f);
  p = fma_f32(f, p, f32v{} + 0.14197608828544617f);
  p = fma_f32(f, p, f32v{} - 0.16622166335582733f);
  p = fma_f32(f, p, f32v{} + 0.20001359283924103f);
  p = fma_f32(f, p, f32v{} - 0.25000855326652527f);
  p = fma_f32(f, p, f32v{} + 0.3333333134651184f);
  return fma_f32(f, p, f32v{} - 0.5f);
}
static inline f32v log_special_f32(f32v x, f32v r) {
  r = x == 0.0f ? f32v{} - __builtin_inff() : r;
  r = x < 0.0f ? f32v{} + __builtin_nanf("") : r;
  return ((x == __builtin_inff()) | (x != x)) ? x : r;
}
)"},
    {"log_f32", "log_reduced_f32",
     R"(static inline f32v log_f32(f32v x) {
  LogReduced a = log_reduced_f32(x);
  f32v t = log_tail_f32(a.f), s = a.f * a.f;
  f32v r = fma_f32(s, t, a.e * 0x1.7f7d1cp-20f) + a.f;
  return log_special_f32(x, fma_f32(a.e, f32v{} + 0x1.62e400p-1f, r));
}
)"},
    {"log2_f32", "log_reduced_f32",
     R"(static inline f32v log2_f32(f32v x) {
  LogReduced a = log_reduced_f32(x);
  f32v y = a.f * a.f * log_tail_f32(a.f);
  f32v r = fma_f32(y, f32v{} + 0x1.715476p+0f, a.f * 0x1.4ae0cp-26f);
  return log_special_f32(x, fma_f32(a.f, f32v{} + 0x1.715476p+0f, r) + a.e);
}
)"},
    {"log10_f32", "log_reduced_f32",
     R"(static inline f32v log10_f32(f32v x) {
  LogReduced a = log_reduced_f32(x);
  f32v y = a.f * a.f * log_tail_f32(a.f);
  f32v r = fma_f32(y, f32v{} + 0x1.bcb7b2p-2f, a.e * 4.605038981195214e-6f);
  r = fma_f32(a.f, f32v{} + 0x1.bcb7b2p-2f, r);
  return log_special_f32(x, fma_f32(a.e, f32v{} + 0x1.344p-2f, r));
}
)"},
    {"log1p_f32", "log_f32",
     R"(static inline f32v log1p_f32(f32v x) {
  f32v u = 1.0f + x, d = u - 1.0f;
  f32v lost = x - d;
  lost = u > 0x1p24f ? f32v{} : lost;
  f32v r = log_f32(u) + lost / u;
  f32v small = (u32v)x << 1 < 0x66000000u ? x : r;  // below 2^-25
  return u == 0.0f ? f32v{} - __builtin_inff() : u == __builtin_inff() ? u : small;
}
)"},
    {"sigmoid_f32", "exp_f32",
     "static inline f32v sigmoid_f32(f32v x) { return 1.0f / (1.0f + exp_f32(-x)); }\n"},
    {"power_of_two_near_f32", "fma_f32",
     R"(static inline f32v power_of_two_near_f32(f32v q) {  // 2^q to 1e-7, for |q| < 126
  f32v t = q + 12583039.0f, r = q - (t - 12583039.0f);  // 1.5 * 2^23 + 127: t ends in the exponent of 2^q
  f32v e = fma_f32(r, f32v{} + 1.3407254591584206e-3f, f32v{} + 9.671875275671482e-3f);
  e = fma_f32(r, e, f32v{} + 5.5503085255622864e-2f);
  e = fma_f32(r, e, f32v{} + 0.24022234976291656f);
  e = fma_f32(r, e, f32v{} + 0.6931472420692444f);
  f32v scale = (f32v)((i32v)t << 23);
  return fma_f32(r * scale, e, scale);
}
)"},
    // Small arguments by their series, others as 1 - 2 / (2^q + 1).
    {"tanh_f32", "power_of_two_near_f32 abs_f32 copysign_f32",
     R"(static inline f32v tanh_f32(f32v x) {
  f32v a = abs_f32(x), s = x * x;
  f32v p = fma_f32(s, f32v{} - 5.717036779969931e-3f, f32v{} + 2.0650578662753105e-2f);
  p = fma_f32(s, p, f32v{} - 5.374349653720856e-2f);
  p = fma_f32(s, p, f32v{} + 0.13331490755081177f);
  p = fma_f32(s, p, f32v{} - 0.3333328366279602f);
  f32v small = fma_f32(p * s, x, x);
  f32v b = a > 9.1f ? f32v{} + 9.1f : a;
  f32v large = 1.0f - 2.0f / (power_of_two_near_f32(b * 2.885390081777927f) + 1.0f);
  return copysign_f32(a < 0.625f ? small : large, x);
}
)"},
    // Small arguments by their series, others as 1 - 2^q(|x|).
    {"erf_f32", "power_of_two_near_f32 abs_f32 copysign_f32",
     R"(static inline f32v erf_f32(f32v x) {
  f32v a = abs_f32(x), s = x * x;
  f32v p = fma_f32(s, f32v{} + 4.489966668188572e-3f, f32v{} - 2.6632927358150482e-2f);
  p = fma_f32(s, p, f32v{} + 0.11280723661184311f);
  p = fma_f32(s, p, f32v{} - 0.3761249780654907f);
  p = fma_f32(s, p, f32v{} + 0.12837915122509003f);
  f32v small = fma_f32(x, p, x);
  f32v b = a > 3.95f ? f32v{} + 3.95f : a;
  f32v q = fma_f32(b, f32v{} + 3.2078431104309857e-4f, f32v{} - 4.74091200158e-3f);
  q = fma_f32(b, q, f32v{} + 3.33714596927166e-2f);
  q = fma_f32(b, q, f32v{} - 0.152460515499115f);
  q = fma_f32(b, q, f32v{} - 0.9165971279144287f);
  q = fma_f32(b, q, f32v{} - 1.6283551454544067f);
  q = fma_f32(b, q, f32v{} + 4.4792028347728774e-5f);
  f32v large = 1.0f - power_of_two_near_f32(q);
  return copysign_f32(a < 0.6f ? small : large, x);
}
)"},
    {"normal_cdf_f32", "erf_f32",
     "static inline f32v normal_cdf_f32(f32v x) { return (erf_f32(x * 0.70710677f) + 1.0f) * 0.5f; }\n"},
    {"sin_cos_f32", "round_f64 fma_f64",
     R"(// r in [-pi/4, pi/4] and the quarter turn of x; large and infinite x by the C library.
struct Turned { f64v r; i64v quarter; };
static inline Turned turn_f64(f64v x) {
  f64v n = round_f64(x * 0.63661977236758134);
  f64v r = fma_f64(n, f64v{} - 1.5707963267948966, x);
  return {fma_f64(n, f64v{} - 6.123233995736766e-17, r), __builtin_convertvector(n, i64v)};
}
static inline f64v sin_poly_f64(f64v r, f64v s) {
  f64v p = fma_f64(s, f64v{} + 2.7182366011402337e-6, f64v{} - 1.9839327433146536e-4);
  p = fma_f64(s, p, f64v{} + 8.333329111337662e-3);
  p = fma_f64(s, p, f64v{} - 0.1666666716337204);
  return r * fma_f64(p, s, f64v{} + 1.0);
}
static inline f64v cos_poly_f64(f64v s) {
  f64v p = fma_f64(s, f64v{} + 2.4437727915938012e-5, f64v{} - 1.388736185617745e-3);
  p = fma_f64(s, p, f64v{} + 4.166664555668831e-2);
  p = fma_f64(s, p, f64v{} - 0.5);
  return fma_f64(s, p, f64v{} + 1.0);
}
extern "C" double sin(double);
extern "C" double cos(double);
__attribute__((noinline)) static f32v far_sin_cos_f32(f32v x, f32v near, bool cosine) {
  for (int l = 0; l < W; ++l)
    if (!(x[l] < 1e8f && x[l] > -1e8f)) near[l] = (float)(cosine ? cos((double)x[l]) : sin((double)x[l]));
  return near;
}
static inline f32v sin_cos_f32(f32v x, int64_t shift) {
  Turned t = turn_f64(__builtin_convertvector(x, f64v));
  i64v quarter = t.quarter + shift;
  f64v s = t.r * t.r, a = sin_poly_f64(t.r, s), b = cos_poly_f64(s);
  f64v v = (quarter & 1) == 0 ? a : b;
  v = (quarter & 2) == 0 ? v : -v;
  f32v r = __builtin_convertvector(v, f32v);
  i32v far = (x >= 1e8f) | (x <= -1e8f) | (x != x);
  int any = 0;
  for (int l = 0; l < W; ++l) any |= far[l];
  return any ? far_sin_cos_f32(x, r, shift != 0) : r;
}
)"},
    {"sin_f32", "sin_cos_f32",
     "static inline f32v sin_f32(f32v x) { return x == 0.0f ? x : sin_cos_f32(x, 0); }\n"},
    {"cos_f32", "sin_cos_f32", "static inline f32v cos_f32(f32v x) { return sin_cos_f32(x, 1); }\n"},

    // --- float64 mathematics, and what is rare in float32: the C library
    {"normal_cdf_f64", "erf_f64",
     "static inline f64v normal_cdf_f64(f64v x) { return (erf_f64(x * 0.70710678118654752) + 1.0) * 0.5; "
     "}\n"},
    {"sigmoid_f64", "exp_f64",
     "static inline f64v sigmoid_f64(f64v x) { return 1.0 / (1.0 + exp_f64(-x)); }\n"},
    OXY_LIBM_UNARY(exp, exp),
    OXY_LIBM_UNARY(exp2, exp2),
    OXY_LIBM_UNARY(expm1, expm1),
    OXY_LIBM_UNARY(log, log),
    OXY_LIBM_UNARY(log2, log2),
    OXY_LIBM_UNARY(log10, log10),
    OXY_LIBM_UNARY(log1p, log1p),
    OXY_LIBM_UNARY(sin, sin),
    OXY_LIBM_UNARY(cos, cos),
    OXY_LIBM_UNARY(tan, tan),
    OXY_LIBM_UNARY(asin, asin),
    OXY_LIBM_UNARY(acos, acos),
    OXY_LIBM_UNARY(atan, atan),
    OXY_LIBM_UNARY(sinh, sinh),
    OXY_LIBM_UNARY(cosh, cosh),
    OXY_LIBM_UNARY(tanh, tanh),
    OXY_LIBM_UNARY(asinh, asinh),
    OXY_LIBM_UNARY(acosh, acosh),
    OXY_LIBM_UNARY(atanh, atanh),
    OXY_LIBM_UNARY(erf, erf),
    OXY_LIBM_UNARY(erfc, erfc),
};

}  // namespace

std::span<const Snippet> snippets() {
  return kSnippets;
}

}  // namespace oxy::backend::cpu
