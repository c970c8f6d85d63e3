// Attention over a paged K/V cache with pages of 16 positions, head size 64.
#include "shim.h"

#define HD 64
#define PAGE 16

// Decode, split over the context: block (head, split) of one sequence. Each
// warp takes every fourth position; partial results go to part[head][split]:
// HD sums, maximum, denominator. group query heads share a K/V head.
GLOBAL BOUNDS(128) decode_split(const u16* q, const u16* kc, const u16* vc, const int* table, float* part, int len, int kvheads, int group,
                                int chunk, float scale) {
  SHARED float so[4][HD];
  SHARED float sm[4], sl[4];
  int head = bid, split = bidy, warp = tid >> 5, lane = tid & 31, kv = head / group;
  int from = split * chunk, to = from + chunk < len ? from + chunk : len;
  float q0 = bf2f(q[head * HD + 2 * lane]) * scale, q1 = bf2f(q[head * HD + 2 * lane + 1]) * scale;
  float m = -1e30f, l = 0, o0 = 0, o1 = 0;
  for (int p = from + warp; p < to; p += 4) {
    long at = (((long)table[p / PAGE] * PAGE + p % PAGE) * kvheads + kv) * HD + 2 * lane;
    u32 k2 = *(const u32*)(kc + at), v2 = *(const u32*)(vc + at);
    float s = warpsum(q0 * asf(k2 << 16) + q1 * asf(k2 & 0xffff0000)) * 1.44269504f;
    float mn = maxf(m, s), f = exp2a(m - mn), e = exp2a(s - mn);
    l = l * f + e;
    o0 = o0 * f + e * asf(v2 << 16);
    o1 = o1 * f + e * asf(v2 & 0xffff0000);
    m = mn;
  }
  so[warp][2 * lane] = o0;
  so[warp][2 * lane + 1] = o1;
  if (lane == 0) sm[warp] = m, sl[warp] = l;
  SYNC();
  if (tid < HD) {
    float M = -1e30f, L = 0, O = 0;
    for (int w = 0; w < 4; w++) M = maxf(M, sm[w]);
    for (int w = 0; w < 4; w++) {
      float f = exp2a(sm[w] - M);
      L += sl[w] * f;
      O += so[w][tid] * f;
    }
    float* out = part + ((long)head * nbidy + split) * (HD + 2);
    out[tid] = O;
    if (tid == 0) out[HD] = M, out[HD + 1] = L;
  }
}

GLOBAL decode_combine(const float* part, u16* out, int splits) {
  const float* p = part + (long)bid * splits * (HD + 2);
  float M = -1e30f, L = 0, O = 0;
  for (int s = 0; s < splits; s++) M = maxf(M, p[s * (HD + 2) + HD]);
  for (int s = 0; s < splits; s++) {
    float f = exp2a(p[s * (HD + 2) + HD] - M);
    L += p[s * (HD + 2) + HD + 1] * f;
    O += p[s * (HD + 2) + tid] * f;
  }
  out[bid * HD + tid] = f2bf(O / L);
}

// Prefill: one warp takes 16 queries of one head against pages of 16 keys, on
// tensor cores with a running softmax. first is the position of query 0.
GLOBAL BOUNDS(32) prefill(const u16* q, const u16* kc, const u16* vc, const int* table, u16* out, int n, int first, int heads, int kvheads,
                          float scale) {
  SHARED16 u16 sq[16][HD + 8], sk[PAGE][HD + 8], sv[PAGE][HD + 8];
  int head = bid, q0 = bidy * 16, lane = tid, kv = head / (heads / kvheads), g = lane >> 2, t = lane & 3;
  for (int i = lane; i < 16 * HD / 8; i += 32) {
    int r = i / (HD / 8), c = i % (HD / 8) * 8, row = q0 + r < n ? q0 + r : n - 1;
    cp16(smem(&sq[r][c]), q + ((long)row * heads + head) * HD + c);
  }
  commit();
  float o[HD / 8][4] = {}, m[2] = {-1e30f, -1e30f}, l[2] = {};
  int last = first + (q0 + 15 < n ? q0 + 15 : n - 1);
  for (int p = 0; p <= last; p += PAGE) {
    long base = ((long)table[p / PAGE] * PAGE * kvheads + kv) * HD;
    for (int i = lane; i < PAGE * HD / 8; i += 32) {
      int r = i / (HD / 8), c = i % (HD / 8) * 8;
      cp16(smem(&sk[r][c]), kc + base + (long)r * kvheads * HD + c);
      cp16(smem(&sv[r][c]), vc + base + (long)r * kvheads * HD + c);
    }
    commit();
    waitg<0>();
    warpsync();  // mutate:warpsync
    float s[2][4] = {};
#pragma unroll
    for (int k = 0; k < HD; k += 16) {
      u32 a[4], b[2];
      ldm4(a, smem(&sq[lane & 15][k + (lane >> 4) * 8]));
#pragma unroll
      for (int j = 0; j < 2; j++) {
        ldm2(b, smem(&sk[8 * j + (lane & 7)][k + ((lane >> 3) & 1) * 8]));
        mma_bf16(s[j], a, b);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int qpos = first + q0 + g + 8 * h;
      float mx = m[h];
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float v = s[j][2 * h + e] * scale * 1.44269504f;
          if (p + 8 * j + 2 * t + e > qpos) v = -1e30f;
          s[j][2 * h + e] = v;
          mx = maxf(mx, v);
        }
      mx = maxf(mx, shx(mx, 1));
      mx = maxf(mx, shx(mx, 2));
      float f = exp2a(m[h] - mx), sum = 0;
      m[h] = mx;
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) sum += s[j][2 * h + e] = exp2a(s[j][2 * h + e] - mx);
      l[h] = l[h] * f + sum;
#pragma unroll
      for (int d = 0; d < HD / 8; d++) o[d][2 * h] *= f, o[d][2 * h + 1] *= f;
    }
    u32 a[4] = {pack2(s[0][0], s[0][1]), pack2(s[0][2], s[0][3]), pack2(s[1][0], s[1][1]), pack2(s[1][2], s[1][3])};
#pragma unroll
    for (int d = 0; d < HD / 8; d++) {
      u32 b[2];
      ldm2t(b, smem(&sv[lane & 15][8 * d]));
      mma_bf16(o[d], a, b);
    }
    warpsync();
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float sum = l[h];
    sum += shx(sum, 1);
    sum += shx(sum, 2);
    int row = q0 + g + 8 * h;
    if (row < n)
#pragma unroll
      for (int d = 0; d < HD / 8; d++) *(u32*)(out + ((long)row * heads + head) * HD + 8 * d + 2 * t) = pack2(o[d][2 * h] / sum, o[d][2 * h + 1] / sum);
  }
}
