// Matrix products with few rows; see gemv.h.
#include "gemv.h"

#define GEMV(W, X)                                                                                                       \
  GLOBAL BOUNDS(256) gemv_##W##_##X(const V4* w, const u16* s, const X* x, void* dst, const float* bias, int m, int n,    \
                                    int k, int flags, X* gated, int kind) {                                                \
    gemv<W, X>(w, s, x, Out{dst, bias, flags, n}, m, k, gated, kind, Straight{});                                                       \
  }
GEMV(bf16, bf16)
GEMV(f16, bf16)
GEMV(f32, bf16)
GEMV(q8, bf16)
GEMV(q4, bf16)
GEMV(bf16, f32)
GEMV(f16, f32)
GEMV(f32, f32)
GEMV(q8, f32)
GEMV(q4, f32)
