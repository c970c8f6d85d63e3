// Mixtures of experts: which experts a row goes to, the rows sorted by expert,
// products of the experts that have rows, and their sum.
//
// A pair is a row and one of its k experts: pair row·k + j. What the kernels
// know of the order of pairs lies in one array of numbers:
//
//	starts [E+1]  the sorted pairs of expert e are starts[e]..starts[e+1]
//	order [P]     the pair at each place
//	count         of the tiles
//	tiles [·,2]   expert, and first place, of each group of pairs that a block takes
#include "gemm.h"
#include "gemv.h"

#define MAX_EXPERTS 1024

// e^x for x ≤ 0 to a few units in the last place: 2^whole · 2^rest, with the
// rest from x·log₂e in two parts.
DEV float expf(float x) {
  x = maxf(x, -150.0f);  // 0 from here on; −∞ would leave no rest
  float t = x * 1.44269504f, whole = __builtin_rintf(t);
  float rest = fma(x, 1.44269504f, -whole) + x * 1.925963e-8f;
  return exp2a(whole) * exp2a(rest);
}

// See kernels.RouteArgs. Grid ⌈rows/4⌉ blocks of 128 threads, a warp for each
// row; e ≤ 1,024, k ≤ 32.
GLOBAL BOUNDS(128) moe_route(const float* logits, int* ids, float* weights, int rows, int e, int k, int normalize) {
  int row = bidx * 4 + (tid >> 5), lane = tid & 31;
  if (row >= rows) return;  // bounds
  const float* x = logits + (i64)row * e;
  ids += (i64)row * k, weights += (i64)row * k;
  float top = -inff();
  int bad = 0;
  for (int i = lane; i < e; i += 32) {
    float v = x[i];
    if (v != v) bad = 1;
    top = maxf(top, v);
  }
  top = warpmax(top);
  for (int m = 16; m; m >>= 1) bad |= shxi(bad, m);
  if (bad || absf(top) == inff()) {
    if (lane < k) ids[lane] = lane, weights[lane] = asf(0x7fc00000u);
    return;
  }
  u32 taken = 0;  // bit i of a lane: expert 32·i + lane
  for (int r = 0; r < k; r++) {
    float best = -inff();
    int at = MAX_EXPERTS;
    for (int i = lane, b = 0; i < e; i += 32, b++) {
      float v = x[i];
      if (!(taken >> b & 1) && (v > best || (v == best && i < at))) best = v, at = i;
    }
    UNROLL for (int m = 16; m; m >>= 1) {
      float v = shx(best, m);
      int i = shxi(at, m);
      if (v > best || (v == best && i < at)) best = v, at = i;
    }
    if ((at & 31) == lane) taken |= 1u << (at >> 5);
  }
  float sum = 0;
  for (int i = lane, b = 0; i < e; i += 32, b++)
    if (!normalize || (taken >> b & 1)) sum += expf(x[i] - top);
  sum = warpsum(sum);
  int n = 0;  // of those with a lower index
  for (int b = 0; 32 * b < e; b++) {
    int i = 32 * b + lane;
    bool in = taken >> b & 1;
    u32 who = __nvvm_vote_ballot_sync(0xffffffffu, in);
    int at = n + __builtin_popcount(who & ((1u << lane) - 1));
    if (in) ids[at] = i, weights[at] = divf(expf(x[i] - top), sum);
    n += __builtin_popcount(who);
  }
}

// Sorts pairs by expert, those of an expert in their order, in tiles of
// 1 << shift. One block of 1,024 threads: each looks for one expert in one of
// as many runs of pairs as there are threads for.
GLOBAL BOUNDS(1024) moe_group(const int* ids, int* starts, int pairs, int e, int shift) {
  SHARED int have[1024];               // [run, expert], then how many the runs before have
  SHARED int all[MAX_EXPERTS];         // of an expert
  SHARED int place[MAX_EXPERTS];       // where an expert's begin
  int *order = starts + e + 1, *count = order + pairs, *tiles = count + 1;
  int runs = 1024 / e, mine = tid % e, run = tid / e;
  int from = run < runs ? pairs * run / runs : 0, end = run < runs ? pairs * (run + 1) / runs : 0;
  int n = 0;
  for (int i = from; i < end; i++) n += ids[i] == mine;
  have[tid] = n;
  SYNC();
  if (tid < e) {
    n = 0;
    for (int r = 0; r < runs; r++) {
      int h = have[r * e + tid];
      have[r * e + tid] = n;
      n += h;
    }
    all[tid] = n;
  }
  SYNC();
  if (tid < e) {
    int at = 0, tile = 0;
    for (int i = 0; i < tid; i++) at += all[i], tile += (all[i] + (1 << shift) - 1) >> shift;
    place[tid] = starts[tid] = at;
    for (int i = 0; i < n; i += 1 << shift, tile++) tiles[2 * tile] = tid, tiles[2 * tile + 1] = at + i;
    if (tid == e - 1) starts[e] = pairs, *count = tile;
  }
  SYNC();
  if (run >= runs) return;
  int to = place[mine] + have[tid];
  for (int i = from; i < end; i++)
    if (ids[i] == mine) order[to++] = i;
}

// The rows of a tile's products: with k those of x are the pairs' rows and
// those of dst their sorted places (gate and up); with k = 0 the other way
// round, and the results lie by pair (down).
struct Sorted {
  const int* order;  // from the tile's first place on
  int first, k;
  METHOD int from(int r) const { return k ? order[r] / k : first + r; }
  METHOD int to(int r) const { return k ? first + r : order[r]; }
};

// An expert's tile of pairs, and its weights in a stack of n × K each.
template <typename W> struct Tile {
  const V4* w;
  const u16* s;
  int m;  // 0: there is none
  Sorted rows;
  METHOD Tile(const V4* stack, const u16* scale, const int* starts, int pairs, int e, int n, int K, int k, int most) {
    const int *order = starts + e + 1, *tiles = order + pairs + 1;
    m = 0;
    if (bidy >= tiles[-1]) return;
    int expert = tiles[2 * bidy], first = tiles[2 * bidy + 1];
    i64 down = (i64)expert * ((n + 15) / 16) * ((K + 63) / 64);  // pairs of tiles before the expert's
    w = stack + down * pairWords<W>() * 32;
    s = scale + down * 32;
    m = mini(most, starts[expert + 1] - first);
    rows = Sorted{order + first, first, k};
  }
};

// dst = x · w of the experts, for each pair; flags as of a product. Grid
// (⌈n/32⌉ or ⌈n/128⌉, as many as there may be tiles), tiles of 8 or of 64.
#define EXPERTS(W, X)                                                                                                      \
  GLOBAL BOUNDS(256) moe_gemv_##W##_##X(const V4* w, const u16* s, const X* x, void* dst, const int* starts, int pairs,     \
                                        int e, int n, int K, int k, int flags, X* gated, int kind) {                       \
    Tile<W> t(w, s, starts, pairs, e, n, K, k, 8);                                                                         \
    if (t.m > 0) gemv<W, X>(t.w, t.s, x, Out{dst, nullptr, flags, n}, t.m, K, gated, kind, t.rows);                         \
  }                                                                                                                        \
  GLOBAL BOUNDS(256) moe_gemm_##W##_##X(const V4* w, const u16* s, const X* x, void* dst, const int* starts, int pairs,     \
                                        int e, int n, int K, int k, int flags, X* gated, int kind) {                       \
    Tile<W> t(w, s, starts, pairs, e, n, K, k, BM);                                                                        \
    if (t.m > 0) gemm<W, X>(t.w, t.s, x, Out{dst, nullptr, flags, n}, 0, t.m, K, gated, kind, t.rows);                      \
  }
EXPERTS(bf16, bf16)
EXPERTS(f16, bf16)
EXPERTS(f32, bf16)
EXPERTS(q8, bf16)
EXPERTS(q4, bf16)
EXPERTS(bf16, f32)
EXPERTS(f16, f32)
EXPERTS(f32, f32)
EXPERTS(q8, f32)
EXPERTS(q4, f32)

// dst[t] += Σ_j weights[t,j] · y[t·k+j], j ascending. Grid (⌈h/256⌉, T), 256
// threads.
template <typename X> DEV void weigh(const float* y, const float* weights, X* dst, int h, int k) {
  int i = bidx * 256 + tid;
  if (i >= h) return;  // bounds
  X* to = dst + (i64)bidy * h + i;
  float v = tof(*to);
  for (int j = 0; j < k; j++) {
    i64 pair = (i64)bidy * k + j;
    v = fma(weights[pair], y[pair * h + i], v);
  }
  put(to, v);
}
GLOBAL BOUNDS(256) moe_sum_bf16(const float* y, const float* w, bf16* dst, int h, int k) { weigh(y, w, dst, h, k); }
GLOBAL BOUNDS(256) moe_sum_f32(const float* y, const float* w, f32* dst, int h, int k) { weigh(y, w, dst, h, k); }
