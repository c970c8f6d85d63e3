// Operations on rows: embedding, norm, activation, and what is read off logits.
#include "act.h"
#include "weight.h"

// Value k of output n of a weight, for one element of an embedding's row.
DEV float element(const bf16* w, const u16*, i64 tile, int half, int lane, int j) { return tof(w[((tile * 2 + half) * 32 + lane) * 8 + j]); }
DEV float element(const f16* w, const u16*, i64 tile, int half, int lane, int j) { return tof(w[((tile * 2 + half) * 32 + lane) * 8 + j]); }
DEV float element(const f32* w, const u16*, i64 tile, int half, int lane, int j) {
  return w[(((tile * 2 + half) * 2 + (j >> 2)) * 32 + lane) * 4 + (j & 3)];
}
DEV float scale(const u16* s, i64 tile, int half, int lane) { return tof(f16{s[tile * 16 + (lane >> 2) * 2 + half]}); }
DEV float element(const q8* w, const u16* s, i64 tile, int half, int lane, int j) {
  return (float)((const signed char*)w)[(tile * 32 + lane) * 16 + half * 8 + j] * scale(s, tile, half, lane);
}
DEV float element(const q4* w, const u16* s, i64 tile, int half, int lane, int j) {
  u32 v = ((const u32*)w)[((tile >> 1) * 32 + lane) * 4 + (tile & 1) * 2 + half];
  return (float)((int)(v >> (4 * (j >> 1) + 16 * (j & 1)) & 15) - 8) * scale(s, tile, half, lane);
}

// dst[t] = row ids[t] of the weight w (layout in weight.h) with rows × dim
// values; an id out of range gives zeros. Grid T blocks of 128 threads.
template <typename W, typename X> DEV void embed(const W* w, const u16* s, const int* ids, X* dst, int rows, int dim) {
  int id = ids[bidx], half = id >> 3 & 1, tiles = (dim + 63) / 64 * 2;
  bool ok = (u32)id < (u32)rows;
  for (int k = tid; k < dim; k += ntid) {
    i64 tile = (i64)(id >> 4) * tiles + (k >> 5);
    put(dst + (i64)bidx * dim + k, ok ? element(w, s, tile, half, (id & 7) * 4 + (k >> 3 & 3), k & 7) : 0.0f);
  }
}

#define EMBED(W, X)                                                                                                    \
  GLOBAL BOUNDS(128) embed_##W##_##X(const W* w, const u16* s, const int* ids, X* dst, int rows, int dim) {             \
    embed<W, X>(w, s, ids, dst, rows, dim);                                                                             \
  }
EMBED(bf16, bf16)
EMBED(f16, bf16)
EMBED(f32, bf16)
EMBED(q8, bf16)
EMBED(q4, bf16)
EMBED(bf16, f32)
EMBED(f16, f32)
EMBED(f32, f32)
EMBED(q8, f32)
EMBED(q4, f32)

// The sum of v over a block of at most 256 threads, in every thread.
DEV float blocksum(float v, float (&part)[8]) {
  v = warpsum(v);
  if ((tid & 31) == 0) part[tid >> 5] = v;
  SYNC();  // barrier
  v = 0;
  for (int i = 0; i < ntid / 32; i++) v += part[i];
  return v;
}

// dst = x / √(mean(x²) + eps) · w for each row of n; dst may be x. Grid T
// blocks of 256 threads.
template <typename X> DEV void rmsnorm(const X* x, const float* w, X* dst, int n, float eps) {
  SHARED float part[8];
  i64 at = (i64)bidx * n;
  float sum = 0;
  for (int i = tid; i < n; i += ntid) {
    float v = tof(x[at + i]);
    sum = fma(v, v, sum);
  }
  sum = blocksum(sum, part);
  float k = 1.0f / sqrtf_rn(sum / n + eps);
  for (int i = tid; i < n; i += ntid) put(dst + at + i, tof(x[at + i]) * k * w[i]);
}
GLOBAL BOUNDS(256) rmsnorm_bf16(const bf16* x, const float* w, bf16* dst, int n, float eps) { rmsnorm(x, w, dst, n, eps); }
GLOBAL BOUNDS(256) rmsnorm_f32(const f32* x, const float* w, f32* dst, int n, float eps) { rmsnorm(x, w, dst, n, eps); }

// dst[t,i] = act(x[t,i]) · x[t,n+i], x [T, 2n]. Grid (⌈n/256⌉, T), 256 threads.
template <typename X> DEV void gated(const X* x, X* dst, int n, int kind) {
  int i = bidx * 256 + tid;
  if (i >= n) return;  // bounds
  const X* row = x + (i64)bidy * 2 * n;
  put(dst + (i64)bidy * n + i, activate(tof(row[i]), kind) * tof(row[n + i]));
}
GLOBAL BOUNDS(256) gated_bf16(const bf16* x, bf16* dst, int n, int kind) { gated(x, dst, n, kind); }
GLOBAL BOUNDS(256) gated_f32(const f32* x, f32* dst, int n, int kind) { gated(x, dst, n, kind); }

// Whether value v at index i comes before the best so far: larger, or equal
// and of a lower index. A NaN never does.
DEV bool before(float v, int i, float best, int at) { return v > best || (v == best && i < at); }

#define NONE 0x7fffffff

// The first of a block's candidates, in every thread; NONE if there is none.
DEV void first(float& best, int& at, float (&bv)[16], int (&bi)[16]) {
  for (int m = 16; m; m >>= 1) {
    float v = shx(best, m);
    int i = shxi(at, m);
    if (before(v, i, best, at)) best = v, at = i;
  }
  if ((tid & 31) == 0) bv[tid >> 5] = best, bi[tid >> 5] = at;
  SYNC();  // barrier
  for (int i = 0; i < ntid / 32; i++)
    if (before(bv[i], bi[i], best, at)) best = bv[i], at = bi[i];
}

// dst[r] = index of the largest of row r's n logits, the lowest among equals;
// −1 if one is NaN or +∞, or all are −∞. Grid R blocks of 512 threads.
GLOBAL BOUNDS(512) argmax(const float* x, int* dst, int n) {
  SHARED float bv[16];
  SHARED int bi[16];
  float best = -inff();
  int at = NONE;
  for (int i = tid; i < n; i += ntid) {
    float v = x[(i64)bidx * n + i];
    if (v != v) v = inff();
    if (before(v, i, best, at)) best = v, at = i;
  }
  first(best, at, bv, bi);
  if (tid == 0) dst[bidx] = absf(best) == inff() ? -1 : at;
}

// The k largest of each chunk of 2,048 values of each row, in order (equal
// values by index); −∞ and index −1 where a chunk has fewer numbers. vals and
// idx are [R, chunks, k]. Value i of a row stands for index ids[row, i], or for
// i where ids is null: a second launch over the first one's results, with
// n = chunks·k, merges chunks. Grid (chunks, R), 256 threads.
GLOBAL BOUNDS(256) topk(const float* x, const int* ids, float* vals, int* idx, int n, int k) {
  SHARED float sv[2048];
  SHARED int si[2048];
  SHARED float bv[2][16];
  SHARED int bi[2][16];
  int from = bidx * 2048, have = mini(2048, n - from);
  for (int i = tid; i < have; i += 256) {
    i64 at = (i64)bidy * n + from + i;
    sv[i] = x[at];
    si[i] = ids ? ids[at] : from + i;
    if (si[i] < 0) si[i] = NONE;
  }
  SYNC();
  float lastv = inff();
  int last = -1;
  for (int r = 0; r < k; r++) {
    float best = -inff();
    int at = NONE;
    for (int i = tid; i < have; i += 256)
      if (before(lastv, last, sv[i], si[i]) && before(sv[i], si[i], best, at)) best = sv[i], at = si[i];
    first(best, at, bv[r & 1], bi[r & 1]);
    if (tid == 0) {
      i64 to = ((i64)bidy * nbidx + bidx) * k + r;
      vals[to] = best;
      idx[to] = at == NONE ? -1 : at;
    }
    lastv = best, last = at;
  }
}
