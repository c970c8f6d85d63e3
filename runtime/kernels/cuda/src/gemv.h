// Products of a weight with few rows (M ≤ 8): bound by reading the weight once.
#pragma once
#include "act.h"
#include "weight.h"

#define TILES 2  // rows of tiles a block takes: 32 outputs

// 8 activations of a row from input k on; zero without a row and beyond the
// inputs.
template <typename X> DEV void loadAct(const X* row, bool in, int k, int K, Half (&out)[act<X>::parts]) {
  V4 a = {0, 0, 0, 0}, b = {0, 0, 0, 0};
  if (in && k < K) {
    const X* p = row + k;
    if (K % 8 == 0) {
      a = *(const V4*)p;
      if (__is_same(X, f32)) b = ((const V4*)p)[1];
    } else {
      u32 v[8];
      UNROLL for (int j = 0; j < 8; j++) {
        v[j] = 0;
        if (k + j < K) {
          if constexpr (__is_same(X, f32)) v[j] = asu(p[j]);
          else v[j] = p[j].v;
        }
      }
      if (__is_same(X, f32)) a = {v[0], v[1], v[2], v[3]}, b = {v[4], v[5], v[6], v[7]};
      else a = {v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16};
    }
  }
  actParts(X{}, a, b, out);
}

// dst[M,N] (+)= x[M,K] · w + bias. Grid ⌈N/32⌉ blocks of 256 threads: each
// warp sums one run of inputs.
//
// With flag 4 the outputs are the gates, then the ups of an MLP, N/2 of each, a
// multiple of 16; then a block takes 16 of both, and gated [M, N/2] becomes their
// gated product as well, from dst's values as they are stored. Grid N/32.
//
// R says which rows of x and dst the M rows are.
template <typename W, typename X, typename R>
DEV void gemv(const V4* w, const u16* s, const X* x, Out o, int m, int K, X* gated, int kind, R which) {
  SHARED16 float part[RUNS][TILES][32][4];
  const int words = pairWords<W>();
  int warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  int pairs = (K + 63) / 64, run = (pairs + RUNS - 1) / RUNS;
  int from = mini(warp * run, pairs), to = mini(from + run, pairs);
  const bool gates = o.flags & 4;
  int rows = (o.n + 15) / 16, rt0 = gates ? bidx : bidx * TILES, next = gates ? rows / 2 : 1;  // rows of tiles
  int have = mini(TILES, rows - rt0);
  const X* mine = x + (i64)(g < m ? which.from(g) : 0) * K;
  float acc[TILES][4] = {};
  for (int u = from; u < to; u++) {
    V4 raw[TILES][words];
    UNROLL for (int r = 0; r < TILES; r++) {
      UNROLL for (int i = 0; i < words; i++) {
        raw[r][i] = {0, 0, 0, 0};
        if (r < have) raw[r][i] = w[(((i64)(rt0 + r * next) * pairs + u) * words + i) * 32 + lane];
      }
    }
    // Lane 4g+t reads the scales of tile t of the four.
    u32 sc4 = 0;
    if (weight<W>::scaled && (t >> 1) < have) sc4 = scales(s, ((i64)(rt0 + (t >> 1) * next) * pairs + u) * 2 + (t & 1), g);
    UNROLL for (int h = 0; h < 2; h++) {
      Half xs[act<X>::parts];
      loadAct<X>(mine, g < m, 64 * u + 32 * h + 8 * t, K, xs);
      UNROLL for (int r = 0; r < TILES; r++) {
        Frag f[weight<W>::parts];
        unpack(W{}, &raw[r][words == 1 ? 0 : h * (words / 2)], h, f);
        float sc[2] = {0, 0};
        if (weight<W>::scaled) widen(shat(sc4, g * 4 + 2 * r + h), sc);
        mulTile<W, X>(acc[r], f, xs, sc);
      }
    }
  }
  UNROLL for (int r = 0; r < TILES; r++) *(V4*)part[warp][r][lane] = {asu(acc[r][0]), asu(acc[r][1]), asu(acc[r][2]), asu(acc[r][3])};
  SYNC();
  // Thread: output tid%32 of the block's, row tid/32.
  int n = tid & 31, row = tid >> 5, nn = (rt0 + (n >> 4) * next) * 16 + (n & 15);
  if (row >= m || nn >= o.n) return;  // bounds
  int r = n >> 4, l = (n & 7) * 4 + (row >> 1), e = (n >> 3 & 1) * 2 + (row & 1);
  float v = 0;
  UNROLL for (int i = 0; i < RUNS; i++) v += part[i][r][l][e];
  row = which.to(row);
  v = finish<X>(o, row, nn, v);
  if (!gates) return;
  float up = shx(v, 16);
  if (n < 16) put(gated + (i64)row * (o.n / 2) + nn, activate(v, kind) * up);
}
