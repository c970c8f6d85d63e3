// Products of a weight with many rows, on tensor cores behind a pipeline of
// asynchronous copies. Each output has the same bits as from gemv.h.
#pragma once
#include "act.h"
#include "weight.h"

#define BN 128  // outputs of a block: 8 rows of tiles
#define BM 64   // rows of a block
#define STEP (BM * 32)

// Copies 8 activations, from input k on, of the block's row r to their place in
// shared memory. There a tile
// has, for f32, the first four of each lane's 8 activations before the others,
// so that a quarter of a warp reads 128 bytes in a row.
template <typename X> DEV void stageAct(u8* to, const X* row, bool in, int r, int c, int k, int K) {
  const bool wide = __is_same(X, f32);
  const X* p = row;
  in = in && k < K;
  if (in) p += k;
  if (K % 8 == 0) {
    cp16(smem(to + r * 64 + c * 16), p, in ? 16 : 0);
    if (wide) cp16(smem(to + BM * 64 + r * 64 + c * 16), (const V4*)p + (in ? 1 : 0), in ? 16 : 0);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < 8; j++) {
    bool ok = in && k + j < K;
    if constexpr (wide) ((float*)(to + (j >> 2) * BM * 64 + r * 64 + c * 16))[j & 3] = ok ? p[j] : 0.0f;
    else ((u16*)(to + r * 64 + c * 16))[j] = ok ? p[j].v : 0;
  }
}

// dst[M,N] (+)= x[M,K] · w + bias. Grid (⌈N/128⌉, ⌈M/64⌉), blocks of 256
// threads: 8 warps of 32 outputs × 32 rows each. A stage of the pipeline is 32
// inputs (q4: 64, of which the odd half waits in place). The block takes rows
// row0.. of M; R says which rows of x and dst they are.
//
// With flag 4 it gates its result too, see gemv.h: of a warp's two rows of tiles
// the first are then gates, the second their ups.
template <typename W, typename X, typename R>
DEV void gemm(const V4* w, const u16* s, const X* x, Out o, int row0, int m, int K, X* gated, int kind, R which) {
  const int words = pairWords<W>();                                    // a pair's V4 for one lane
  const int wbytes = BN / 16 * 32 * 16 * (words == 1 ? 1 : words / 2);  // weight bytes of a stage
  const int xbytes = BM * 32 * sizeof(X);
  const int stages = 3 * (wbytes + xbytes) <= 49152 ? 3 : 2;
  SHARED16 u8 sw[stages][wbytes];
  SHARED16 u8 sx[stages][xbytes];
  int warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  int wn = (warp >> 1) * 2, wm = (warp & 1) * 32;  // first row of tiles, first row
  int pairs = (K + 63) / 64, run = (pairs + RUNS - 1) / RUNS, tiles = 2 * pairs;
  int rows = (o.n + 15) / 16, rt0 = bidx * (BN / 16);
  // The weight's row of tiles that is the block's r-th; rows when there is none.
  // In numbers rather than conditions, for which clang would copy the loop.
  const int half = o.flags >> 2 & 1, first = rt0 >> half, end = rows >> half;
  auto tile = [&](int r) {
    int rt = first + (r >> half);
    return rt < end ? rt + (r & half) * end : rows;
  };
  bool mine = row0 + (tid >> 2) < m;  // the row that this thread copies
  const X* from = x + (i64)(mine ? which.from(row0 + (tid >> 2)) : 0) * K;
  auto load = [&](int kt) {
    int st = kt % stages;
    const int per = wbytes / (BN / 16) / 16;  // V4 of a tile in this stage
    for (int i = tid; i < wbytes / 16; i += 256) {
      int r = i / per, c = i % per;
      int rt = tile(r);
      bool in = rt < rows;
      i64 at = words == 1 ? ((i64)rt * pairs + kt / 2) * 32 + c : ((i64)rt * tiles + kt) * per + c;
      cp16(smem(sw[st] + i * 16), w + (in ? at : 0), in ? 16 : 0);
    }
    stageAct<X>(sx[st], from, mine, tid >> 2, tid & 3, kt * 32 + (tid & 3) * 8, K);
  };
  float acc[2][4][4] = {}, tot[2][4][4] = {};
  UNROLL for (int i = 0; i < stages - 1; i++) {
    if (i < tiles) load(i);
    commit();
  }
  int left = 2 * run;
  for (int kt = 0; kt < tiles; kt++) {
    waitg<stages - 2>();
    SYNC();
    if (kt + stages - 1 < tiles) load(kt + stages - 1);
    commit();
    int st = kt % stages;
    Half xs[4][act<X>::parts];
    UNROLL for (int j = 0; j < 4; j++) {
      const V4* p = (const V4*)(sx[st] + (wm + 8 * j + g) * 64 + t * 16);
      V4 a = *p, b = {0, 0, 0, 0};
      if (__is_same(X, f32)) b = p[BM * 4];
      actParts(X{}, a, b, xs[j]);
    }
    UNROLL for (int i = 0; i < 2; i++) {
      const int n = words == 1 ? 1 : words / 2;
      V4 raw[n];
      UNROLL for (int c = 0; c < n; c++) raw[c] = ((const V4*)sw[st])[((wn + i) * n + c) * 32 + lane];
      Frag f[weight<W>::parts];
      unpack(W{}, raw, kt, f);
      float sc[2] = {0, 0};
      if (weight<W>::scaled && tile(wn + i) < rows) widen(scales(s, (i64)tile(wn + i) * tiles + kt, g), sc);
      UNROLL for (int j = 0; j < 4; j++) mulTile<W, X>(acc[i][j], f, xs[j], sc);
    }
    if (--left == 0 || kt == tiles - 1) {
      left = 2 * run;
      UNROLL for (int i = 0; i < 2; i++)
        UNROLL for (int j = 0; j < 4; j++)
          UNROLL for (int e = 0; e < 4; e++) tot[i][j][e] += acc[i][j][e], acc[i][j][e] = 0;
    }
  }
  UNROLL for (int j = 0; j < 4; j++)
    UNROLL for (int b = 0; b < 2; b++) {
      int row = row0 + wm + 8 * j + 2 * t + b;
      if (row >= m) continue;  // bounds
      row = which.to(row);
      UNROLL for (int i = 0; i < 2; i++)
        UNROLL for (int e = b; e < 4; e += 2) {
          int n = tile(wn + i) * 16 + g + (e >> 1) * 8;
          if (n < o.n) finish<X>(o, row, n, tot[i][j][e]);
        }
    }
  if (!half) return;
  // The thread's own results, read back: from registers the loop would have to
  // be unrolled, and the activation is long.
  const X* dst = (const X*)o.dst;
#pragma unroll 1
  for (int i = 0; i < 16; i++) {
    int row = row0 + wm + 8 * (i >> 2) + 2 * t + (i & 1), n = tile(wn) * 16 + g + (i & 2) * 4;
    if (row >= m || n >= o.n) continue;  // bounds
    row = which.to(row);
    const X* gate = dst + (i64)row * o.n + n;
    put(gated + (i64)row * (o.n / 2) + n, activate(tof(gate[0]), kind) * tof(gate[o.n / 2]));
  }
}
