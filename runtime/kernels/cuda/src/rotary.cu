// What happens to Q, K and V between their product and attention.
#include "common.h"

#define MAXDIM 512

// In place on qkv [T, (Q+2·KV)·dim]: RMSNorm of each Q and K head where qnorm,
// knorm [dim] are not null; rotation of their first 2·half elements, paired
// (i, i+half), by row pos[t] of cosines and sines [positions, half]; then K
// and V go to slot slots[t] of the pages [blocks, KV, 16, dim], as qkv now
// holds them. Grid (T, ⌈(Q+2·KV)/4⌉), 128 threads: a warp a head; dim ≤ 512.
template <typename X, typename C>
DEV void rotary(X* qkv, C* kp, C* vp, const float* cosines, const float* sines, const int* pos, const int* slots,
                const float* qnorm, const float* knorm, int Q, int KV, int dim, int half, float eps) {
  SHARED float buf[4][MAXDIM];
  int warp = tid >> 5, lane = tid & 31, head = bidy * 4 + warp, t = bidx;
  if (head >= Q + 2 * KV) return;
  X* x = qkv + ((i64)t * (Q + 2 * KV) + head) * dim;
  int slot = slots[t];
  if (head >= Q + KV) {
    C* to = vp + (((i64)(slot >> 4) * KV + head - Q - KV) * 16 + (slot & 15)) * dim;
    for (int i = lane; i < dim; i += 32) put(to + i, tof(x[i]));
    return;
  }
  float* v = buf[warp];
  float sum = 0;
  for (int i = lane; i < dim; i += 32) {
    v[i] = tof(x[i]);
    sum = fma(v[i], v[i], sum);
  }
  const float* w = head < Q ? qnorm : knorm;
  if (w) {
    float k = 1.0f / sqrtf_rn(warpsum(sum) / dim + eps);
    for (int i = lane; i < dim; i += 32) v[i] *= k * w[i];
  }
  WARPSYNC();
  i64 row = (i64)pos[t] * half;
  for (int i = lane; i < dim; i += 32) {
    float y = v[i];
    if (i < half) y = fma(y, cosines[row + i], -(v[i + half] * sines[row + i]));
    else if (i < 2 * half) y = fma(y, cosines[row + i - half], v[i - half] * sines[row + i - half]);
    put(x + i, y);
    if (head >= Q) put(kp + (((i64)(slot >> 4) * KV + head - Q) * 16 + (slot & 15)) * dim + i, tof(x[i]));
  }
}

#define ROTARY(X, C)                                                                                                      \
  GLOBAL BOUNDS(128) rotary_##C##_##X(X* qkv, C* k, C* v, const float* cosines, const float* sines, const int* pos,        \
                                      const int* slots, const float* qnorm, const float* knorm, int q, int kv, int dim,    \
                                      int half, float eps) {                                                               \
    rotary<X, C>(qkv, k, v, cosines, sines, pos, slots, qnorm, knorm, q, kv, dim, half, eps);                              \
  }
ROTARY(bf16, bf16)
ROTARY(f32, bf16)
ROTARY(f32, f32)
