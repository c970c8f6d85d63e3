// Matrix-vector products: one warp a row of the weights.
#include "shim.h"

DEV float dot8(V4 w, const float* x) {
  return asf(w.x << 16) * x[0] + asf(w.x & 0xffff0000) * x[1] + asf(w.y << 16) * x[2] + asf(w.y & 0xffff0000) * x[3] +
         asf(w.z << 16) * x[4] + asf(w.z & 0xffff0000) * x[5] + asf(w.w << 16) * x[6] + asf(w.w & 0xffff0000) * x[7];
}

// y[row] = W[row] · x, bf16 weights, 16-byte loads; k a multiple of 8.
GLOBAL BOUNDS(128) gemv_bf16(const u16* w, const float* x, float* y, int rows, int k) {
  DYNAMIC(float, sx);
  for (int i = tid; i < k; i += ntid) sx[i] = x[i];
  SYNC();
  int row = bid * (ntid / 32) + tid / 32, lane = tid & 31;
  if (row >= rows) return;
  const V4* wr = (const V4*)(w + (long)row * k);
  float s = 0;
  for (int i = lane; i < k / 8; i += 32) s += dot8(wr[i], sx + 8 * i);
  s = warpsum(s);
  if (lane == 0) y[row] = s;
}

// Weights of 8 bits with a scale for each 32, activations quantised likewise:
// y[row] = sum over groups of ws·xs·(q · qx) by dp4a.
GLOBAL BOUNDS(128) gemv_q8(const s8* w, const float* ws, const s8* x, const float* xs, float* y, int rows, int k) {
  int row = bid * (ntid / 32) + tid / 32, lane = tid & 31;
  if (row >= rows) return;
  const u32* wr = (const u32*)(w + (long)row * k);
  const u32* xr = (const u32*)x;
  float s = 0;
  for (int g = lane; g < k / 32; g += 32) {
    int acc = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) asm("dp4a.s32.s32 %0,%1,%2,%0;" : "+r"(acc) : "r"(wr[g * 8 + j]), "r"(xr[g * 8 + j]));
    s += acc * ws[(long)row * (k / 32) + g] * xs[g];
  }
  s = warpsum(s);
  if (lane == 0) y[row] = s;
}

// Weights of 4 bits (two a byte, offset by 8) with an f16 scale for each 32.
GLOBAL BOUNDS(128) gemv_q4(const u32* w, const u16* ws, const float* x, float* y, int rows, int k) {
  int row = bid * (ntid / 32) + tid / 32, lane = tid & 31;
  if (row >= rows) return;
  const V4* wr = (const V4*)(w + (long)row * (k / 8));
  float s = 0;
  for (int g = lane; g < k / 32; g += 32) {
    V4 v = wr[g];
    u32 q[4] = {v.x, v.y, v.z, v.w};
    float a = 0;
#pragma unroll
    for (int j = 0; j < 32; j++) a += (float)((int)(q[j / 8] >> (4 * (j % 8)) & 15) - 8) * x[g * 32 + j];
    s += a * h2f(ws[(long)row * (k / 32) + g]);
  }
  s = warpsum(s);
  if (lane == 0) y[row] = s;
}
