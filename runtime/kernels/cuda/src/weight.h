// Weight matrices as they lie in device memory, and the arithmetic of their
// products: one definition for the few-rows and the many-rows kernel, so that
// both give the same bits.
//
// A weight of N outputs and K inputs is padded with zeros to a multiple of 16
// outputs and of 64 inputs, and cut into tiles of 16 × 32. Tiles of the same
// outputs follow each other. Within a tile lane 4g+t of a warp owns inputs
// 8t..8t+7 of outputs g ("half" 0) and g+8 ("half" 1), as the tensor core's
// fragments want them (which input sits in which of the 16 places of an mma
// is free, if both operands agree). With KT = 2·⌈K/64⌉ tiles a row of tiles,
// rt = n/16, kt = k/32, g = n%8, half = n/8%2, t = k%32/8, j = k%8:
//
//	bf16, f16  u16 at (((rt·KT+kt)·2 + half)·32 + 4g+t)·8 + j            1,024 bytes a tile
//	f32        u32 at ((((rt·KT+kt)·2 + half)·2 + j/4)·32 + 4g+t)·4 + j%4 2,048
//	q8         s8  at ((rt·KT+kt)·32 + 4g+t)·16 + half·8 + j               512
//	q4         u32 at ((rt·KT+kt)/2·32 + 4g+t)·4 + kt%2·2 + half           256
//	           with value j, an unsigned q of 0..15 that stands for q−8, in
//	           bits 4·(j/2) + 16·(j%2) and the three above
//
// q8 and q4 have an f16 scale for 32 inputs of an output, in memory of its
// own: u16 at (rt·KT+kt)·16 + 2g + half.
//
// The order of additions of an output: the ⌈K/64⌉ pairs of tiles are cut into
// 8 runs of equal length (the last ones shorter or empty); a run's products
// are summed in order on the tensor core (q8, q4: each tile's sum from zero,
// times its scale, added in order); the runs' sums are added in order.
//
// Operands with more bits than bf16 are cut into up to three bf16 parts that
// add up to them exactly; part i of the weight meets part j of the activation
// where i+j ≤ 2.
#pragma once
#include "common.h"

#define RUNS 8

struct q8 {};
struct q4 {};
struct Frag { u32 r[8]; };  // one tile: half 0's registers 0..3, half 1's 4..7
struct Half { u32 r[4]; };  // 8 inputs of one output or row

template <typename W> struct weight;
template <> struct weight<bf16> { static const int parts = 1, words = 2; static const bool scaled = false; };
template <> struct weight<f16> { static const int parts = 2, words = 2; static const bool scaled = false; };
template <> struct weight<f32> { static const int parts = 3, words = 4; static const bool scaled = false; };
template <> struct weight<q8> { static const int parts = 1, words = 1; static const bool scaled = true; };
template <> struct weight<q4> { static const int parts = 1, words = 1; static const bool scaled = true; };
template <typename X> struct act;
template <> struct act<bf16> { static const int parts = 1; };
template <> struct act<f32> { static const int parts = 3; };

// cut splits v into parts by truncation, so that no part overflows and all
// have v's sign; infinities and NaNs are in the first alone.
template <int P> DEV void cut(float v, u32 (&p)[P]) {
  UNROLL for (int i = 0; i < P; i++) {
    u32 h = asu(v) & 0xffff0000u;
    if (v != v) h = 0x7fc00000u;
    p[i] = h >> 16;
    v -= asf(h);
    if (v != v) v = 0;
  }
}

// cut2 is cut of two neighbours.
template <int P> DEV void cut2(float lo, float hi, u32* r, int stride) {
  u32 a[P], b[P];
  cut<P>(lo, a);
  cut<P>(hi, b);
  UNROLL for (int i = 0; i < P; i++) r[i * stride] = a[i] | b[i] << 16;
}

// finite turns the infinities and NaNs of two bf16 into finite values: what
// meets a lower part, which may be zero.
DEV u32 finite(u32 v) {
  u32 lo, r;
  asm("min.bf16x2 %0,%1,%2;" : "=r"(lo) : "r"(v), "r"(0x7f7f7f7fu));
  asm("max.bf16x2 %0,%1,%2;" : "=r"(r) : "r"(lo), "r"(0xff7fff7fu));
  return r;
}

// unpack makes the bf16 parts of one tile out of lane's raw words.
DEV void unpack(bf16, const V4* raw, int, Frag (&f)[1]) {
  UNROLL for (int h = 0; h < 2; h++) {
    f[0].r[4 * h] = raw[h].x, f[0].r[4 * h + 1] = raw[h].y, f[0].r[4 * h + 2] = raw[h].z, f[0].r[4 * h + 3] = raw[h].w;
  }
}

DEV void unpack(f16, const V4* raw, int, Frag (&f)[2]) {
  UNROLL for (int h = 0; h < 2; h++) {
    u32 w[4] = {raw[h].x, raw[h].y, raw[h].z, raw[h].w};
    UNROLL for (int i = 0; i < 4; i++) {
      u32 r[2];
      cut2<2>(tof(f16{(u16)w[i]}), tof(f16{(u16)(w[i] >> 16)}), r, 1);
      f[0].r[4 * h + i] = r[0], f[1].r[4 * h + i] = r[1];
    }
  }
}

DEV void unpack(f32, const V4* raw, int, Frag (&f)[3]) {
  UNROLL for (int i = 0; i < 4; i++) {
    u32 a[3], b[3];
    cut2<3>(asf(raw[i].x), asf(raw[i].y), a, 1);
    cut2<3>(asf(raw[i].z), asf(raw[i].w), b, 1);
    UNROLL for (int p = 0; p < 3; p++) f[p].r[2 * i] = a[p], f[p].r[2 * i + 1] = b[p];
  }
}

// Bytes become the low bits of floats of 2^23 + q+128, whose difference to
// 2^23 + 128 is q, exact in the upper half of its bits.
DEV void unpack(q8, const V4* raw, int, Frag (&f)[1]) {
  u32 w[4] = {raw->x ^ 0x80808080u, raw->y ^ 0x80808080u, raw->z ^ 0x80808080u, raw->w ^ 0x80808080u};
  UNROLL for (int i = 0; i < 8; i++) {
    u32 v = w[i >> 1], s = i & 1 ? 2 : 0;
    float lo = asf(prmt(v, 0x4b000000u, 0x7650 | s)) - 8388736.0f;
    float hi = asf(prmt(v, 0x4b000000u, 0x7650 | (s + 1))) - 8388736.0f;
    f[0].r[i] = prmt(asu(lo), asu(hi), 0x7632);
  }
}

// Nibbles become the low bits of bf16 of 128 + q, of which 136 is taken.
DEV void unpack(q4, const V4* raw, int kt, Frag (&f)[1]) {
  u32 w[2] = {kt & 1 ? raw->z : raw->x, kt & 1 ? raw->w : raw->y};
  UNROLL for (int i = 0; i < 8; i++) {
    u32 v = (w[i >> 2] >> (4 * (i & 3)) & 0x000f000fu) | 0x43004300u;
    asm("fma.rn.bf16x2 %0,%1,%2,%3;" : "=r"(f[0].r[i]) : "r"(v), "r"(0x3f803f80u), "r"(0xc308c308u));
  }
}

// words a lane reads for a pair of tiles.
template <typename W> DEV constexpr int pairWords() { return weight<W>::scaled ? (__is_same(W, q4) ? 1 : 2) : 2 * weight<W>::words; }

// The scales of outputs g and g+8 of a tile, as they lie and widened.
DEV u32 scales(const u16* s, i64 tile, int g) { return *(const u32*)(s + tile * 16 + 2 * g); }
DEV void widen(u32 v, float (&f)[2]) {
  f[0] = tof(f16{(u16)v});
  f[1] = tof(f16{(u16)(v >> 16)});
}

// mulTile adds one tile's products of 16 outputs and 8 rows.
template <typename W, typename X>
DEV void mulTile(float (&acc)[4], const Frag (&w)[weight<W>::parts], const Half (&x)[act<X>::parts], const float (&s)[2]) {
  float zero[4] = {};
  float(&c)[4] = weight<W>::scaled ? zero : acc;
  UNROLL for (int i = 0; i < weight<W>::parts; i++)
    UNROLL for (int j = 0; j < act<X>::parts; j++) {
      if (i + j > 2) continue;
      UNROLL for (int k = 0; k < 2; k++) {
        u32 a[4] = {w[i].r[2 * k], w[i].r[4 + 2 * k], w[i].r[2 * k + 1], w[i].r[5 + 2 * k]};
        u32 b[2] = {x[j].r[2 * k], x[j].r[2 * k + 1]};
        if (i == 0 && j > 0) UNROLL for (int e = 0; e < 4; e++) a[e] = finite(a[e]);
        if (j == 0 && i > 0) b[0] = finite(b[0]), b[1] = finite(b[1]);
        mma(c, a[0], a[1], a[2], a[3], b[0], b[1]);
      }
    }
  if (weight<W>::scaled) {
    acc[0] = fma(c[0], s[0], acc[0]);
    acc[1] = fma(c[1], s[0], acc[1]);
    acc[2] = fma(c[2], s[1], acc[2]);
    acc[3] = fma(c[3], s[1], acc[3]);
  }
}

// The parts of 8 activations that lie in memory as two V4 (f32) or one (bf16).
DEV void actParts(bf16, V4 a, V4, Half (&x)[1]) { x[0].r[0] = a.x, x[0].r[1] = a.y, x[0].r[2] = a.z, x[0].r[3] = a.w; }
DEV void actParts(f32, V4 a, V4 b, Half (&x)[3]) {
  cut2<3>(asf(a.x), asf(a.y), &x[0].r[0], 4);
  cut2<3>(asf(a.z), asf(a.w), &x[0].r[1], 4);
  cut2<3>(asf(b.x), asf(b.y), &x[0].r[2], 4);
  cut2<3>(asf(b.z), asf(b.w), &x[0].r[3], 4);
}

// Where a product's results go, and what is added to them.
struct Out {
  void* dst;          // [T, N]
  const float* bias;  // [N], or null
  int flags;          // 1: add to what dst holds; 2: dst is f32 whatever X is; 4: see gemv.h
  int n;
};

// Stores one result and gives its value as it is stored.
template <typename X> DEV float finish(const Out& o, int row, int n, float v) {
  i64 at = (i64)row * o.n + n;
  if (o.bias) v += o.bias[n];
  if (o.flags & 2 || __is_same(X, f32)) {
    float* d = (float*)o.dst + at;
    if (o.flags & 1) v += *d;
    return *d = v;
  }
  X* d = (X*)o.dst + at;
  if (o.flags & 1) v += tof(*d);
  put(d, v);
  return tof(*d);
}

#define METHOD __attribute__((device)) inline __attribute__((always_inline))

// The rows of a product as they are; another mapping of a product's rows to
// those of x and dst has the same methods.
struct Straight {
  METHOD int from(int row) const { return row; }
  METHOD int to(int row) const { return row; }
};
