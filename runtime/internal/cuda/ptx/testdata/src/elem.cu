// Element-wise and reducing kernels of a language model.
#include "shim.h"

// out[row] = table[ids[row]]; one block a row, 16 bytes a thread.
GLOBAL embedding(const u16* table, const int* ids, u16* out, int dim, int vocab) {
  int id = ids[bid];
  if ((u32)id >= (u32)vocab) return;
  const V4* src = (const V4*)(table + (long)id * dim);
  V4* dst = (V4*)(out + (long)bid * dim);
  for (int i = tid; i < dim / 8; i += ntid) dst[i] = src[i];
}

// x += res; out = x / rms(x) * w; one block a row.
GLOBAL BOUNDS(256) rmsnorm(float* x, const float* res, const u16* w, u16* out, int n, float eps) {
  SHARED float part[8];
  float s = 0;
  float* row = x + (long)bid * n;
  const float* r = res + (long)bid * n;
  for (int i = tid; i < n; i += ntid) {
    float v = row[i] + r[i];
    row[i] = v;
    s += v * v;
  }
  s = warpsum(s);
  if ((tid & 31) == 0) part[tid >> 5] = s;
  SYNC();  // mutate:barrier
  s = 0;
  for (int i = 0; i < ntid / 32; i++) s += part[i];
  float k = rsq(s / n + eps);
  for (int i = tid; i < n; i += ntid) out[(long)bid * n + i] = f2bf(row[i] * k * bf2f(w[i]));
}

// Rotates the pairs (i, i+half) of each head in place; cos/sin tables by position.
GLOBAL rotary(u16* q, const float* cs, const float* sn, const int* pos, int heads, int half) {
  int p = pos[bid];
  for (int i = tid; i < heads * half; i += ntid) {
    int h = i / half, j = i % half;
    u16* v = q + ((long)bid * heads + h) * 2 * half;
    float c = cs[p * half + j], s = sn[p * half + j];
    float a = bf2f(v[j]), b = bf2f(v[j + half]);
    v[j] = f2bf(a * c - b * s);
    v[j + half] = f2bf(b * c + a * s);
  }
}

// out = silu(gate) * up
GLOBAL silu_mul(const u16* gate, const u16* up, u16* out, int n) {
  int i = bid * ntid + tid;
  if (i >= n) return;  // mutate:bounds
  float g = bf2f(gate[i]);
  out[i] = f2bf(g / (1.0f + exp2a(-1.44269504f * g)) * bf2f(up[i]));
}

// out = gelu_tanh(gate) * up
GLOBAL gelu_mul(const u16* gate, const u16* up, u16* out, int n) {
  int i = bid * ntid + tid;
  if (i >= n) return;
  float g = bf2f(gate[i]), t;
  asm("tanh.approx.f32 %0,%1;" : "=f"(t) : "f"(0.7978845608f * (g + 0.044715f * g * g * g)));
  out[i] = f2bf(0.5f * g * (1.0f + t) * bf2f(up[i]));
}

// The index of the largest value of each row; the lowest index among equals.
GLOBAL BOUNDS(256) argmax(const float* x, int* out, int n) {
  SHARED float bv[8];
  SHARED int bi[8];
  float best = -inff();
  int at = 0x7fffffff;
  for (int i = tid; i < n; i += ntid) {
    float v = x[(long)bid * n + i];
    if (v > best || (v == best && i < at)) best = v, at = i;
  }
  for (int m = 16; m; m >>= 1) {
    float v = shx(best, m);
    int i = shxi(at, m);
    if (v > best || (v == best && i < at)) best = v, at = i;
  }
  if ((tid & 31) == 0) bv[tid >> 5] = best, bi[tid >> 5] = at;
  SYNC();
  if (tid == 0) {
    for (int i = 1; i < ntid / 32; i++)
      if (bv[i] > best || (bv[i] == best && bi[i] < at)) best = bv[i], at = bi[i];
    out[bid] = at;
  }
}

// The k largest of a row in order: k rounds of argmax over values kept in
// dynamic shared memory.
GLOBAL BOUNDS(128) topk(const float* x, float* vals, int* idx, int n, int k) {
  DYNAMIC(float, s);
  SHARED float bv[4];
  SHARED int bi[4];
  for (int i = tid; i < n; i += ntid) s[i] = x[(long)bid * n + i];
  SYNC();
  for (int r = 0; r < k; r++) {
    float best = -inff();
    int at = 0x7fffffff;
    for (int i = tid; i < n; i += ntid)
      if (s[i] > best) best = s[i], at = i;
    for (int m = 16; m; m >>= 1) {
      float v = shx(best, m);
      int i = shxi(at, m);
      if (v > best || (v == best && i < at)) best = v, at = i;
    }
    if ((tid & 31) == 0) bv[tid >> 5] = best, bi[tid >> 5] = at;
    SYNC();
    if (tid == 0) {
      for (int i = 1; i < 4; i++)
        if (bv[i] > best || (bv[i] == best && bi[i] < at)) best = bv[i], at = bi[i];
      vals[(long)bid * k + r] = best;
      idx[(long)bid * k + r] = at;
      s[at] = -inff();
    }
    SYNC();
  }
}

// Sums over a buffer of 64-bit words: out[0] += sum of w, out[1] += sum of a
// mix of w and its index.
GLOBAL digest(const u64* p, u64* out, u64 n) {
  u64 a = 0, b = 0;
  for (u64 i = (u64)bid * ntid + tid; i < n; i += (u64)nbid * ntid) {
    u64 w = p[i];
    a += w;
    u64 m = (w ^ (i * 0x9e3779b97f4a7c15ull)) * 0xbf58476d1ce4e5b9ull;
    b += m ^ (m >> 29);
  }
  atomic_add(&out[0], a);
  atomic_add(&out[1], b);
}

GLOBAL fill(u32* p, u64 n, u32 v) {
  for (u64 i = (u64)bid * ntid + tid; i < n; i += (u64)nbid * ntid) p[i] = v + (u32)i * 2654435761u;
}

// Counts the words that differ from what fill wrote, and keeps the first index.
GLOBAL compare(const u32* p, u64 n, u32 v, u32* bad, u64* first) {
  for (u64 i = (u64)bid * ntid + tid; i < n; i += (u64)nbid * ntid)
    if (p[i] != v + (u32)i * 2654435761u) {
      asm volatile("red.global.add.u32 [%0],1;" ::"l"(bad) : "memory");
      asm volatile("red.global.min.u64 [%0],%1;" ::"l"(first), "l"(i) : "memory");
    }
}

// Conversions: f32 to bf16, f16 and s8 (scaled, rounded, saturated) and back.
GLOBAL convert(const float* x, u16* b, u16* h, s8* q, float* back, float scale, int n) {
  int i = bid * ntid + tid;
  if (i >= n) return;
  float v = x[i];
  b[i] = f2bf(v);
  h[i] = f2h(v);
  int r;
  asm("cvt.rni.sat.s8.f32 %0,%1;" : "=r"(r) : "f"(v / scale));
  q[i] = (s8)r;
  back[i] = bf2f(b[i]) + h2f(h[i]) + (float)q[i] * scale;
}
