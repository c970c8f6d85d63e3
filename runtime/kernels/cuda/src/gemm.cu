// Matrix products with many rows; see gemm.h.
#include "gemm.h"

#define GEMM(W, X)                                                                                                       \
  GLOBAL BOUNDS(256) gemm_##W##_##X(const V4* w, const u16* s, const X* x, void* dst, const float* bias, int m, int n,    \
                                    int k, int flags, X* gated, int kind) {                                               \
    gemm<W, X>(w, s, x, Out{dst, bias, flags, n}, bidy * BM, m, k, gated, kind, Straight{});                                \
  }
GEMM(bf16, bf16)
GEMM(f16, bf16)
GEMM(f32, bf16)
GEMM(q8, bf16)
GEMM(q4, bf16)
GEMM(bf16, f32)
GEMM(f16, f32)
GEMM(f32, f32)
GEMM(q8, f32)
GEMM(q4, f32)
