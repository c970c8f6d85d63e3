// Matrix products with few rows; see gemv.h.
#include "gemv.h"

#define GEMV_BOUNDS(W, X, ...)                                                                                           \
  GLOBAL __VA_ARGS__ gemv_##W##_##X(const V4* w, const u16* s, const X* x, void* dst, const float* bias, int m, int n,    \
                                    int k, int flags, X* gated, int kind) {                                                \
    gemv<W, X>(w, s, x, Out{dst, bias, flags, n}, m, k, gated, kind, Straight{});                                                       \
  }
#define GEMV(W, X) GEMV_BOUNDS(W, X, BOUNDS(256))
GEMV(bf16, bf16)
GEMV(f16, bf16)
GEMV(f32, bf16)
GEMV(q8, bf16)
GEMV(q4, bf16)
GEMV(bf16, f32)
GEMV_BOUNDS(f16, f32, BOUNDS2(256, 2))  // left alone, ptxas spills to have three blocks on a processor
GEMV(f32, f32)
GEMV(q8, f32)
GEMV(q4, f32)
