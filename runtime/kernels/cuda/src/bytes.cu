// Kernels on plain bytes: digest, pattern, copy. Sizes are in bytes and need
// not be multiples of anything, nor pointers aligned: what is aligned is fast.
#include "common.h"

DEV u64 mix0(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}
DEV u64 mix1(u64 x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

// The 64-bit word of the n ≤ 8 bytes at p, zero above them.
DEV u64 word(const u8* p, u64 n) {
  if (n >= 8 && ((u64)p & 7) == 0) return *(const u64*)p;
  u64 w = 0;
  for (int i = 0; i < 8 && (u64)i < n; i++) w |= (u64)p[i] << (8 * i);
  return w;
}

DEV void add(u64* p, u64 v) { asm volatile("red.global.add.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory"); }
DEV u64 shx64(u64 v, int m) { return (u64)(u32)shxi((int)v, m) | (u64)(u32)shxi((int)(v >> 32), m) << 32; }

// out[0..1] += the digest of n bytes (see kernels.NewDigest): with out zero
// before, it is the digest. Any grid, 256 threads; 8 bytes a thread a turn.
GLOBAL BOUNDS(256) digest(const u8* p, u64 n, u64* out) {
  SHARED u64 part[8][2];
  u64 s0 = 0, s1 = 0, words = (n + 7) / 8;
  if (bidx == 0 && tid == 0) s0 = mix0(n), s1 = mix1(n);
  for (u64 i = (u64)bidx * 256 + tid; i < words; i += (u64)nbidx * 256) {
    u64 w = word(p + 8 * i, n - 8 * i);
    s0 += mix0(w + (i + 1) * 0x9e3779b97f4a7c15ull);
    s1 += mix1(w + (i + 1) * 0xd1342543de82ef95ull);
  }
  UNROLL for (int m = 16; m; m >>= 1) s0 += shx64(s0, m), s1 += shx64(s1, m);
  if ((tid & 31) == 0) part[tid >> 5][0] = s0, part[tid >> 5][1] = s1;
  SYNC();  // barrier
  if (tid > 1) return;
  u64 s = 0;
  for (int i = 0; i < 8; i++) s += part[i][tid];
  add(out + tid, s);
}

// The pattern of fill and compare: word i (little-endian, from the buffer's
// start) is mix0(seed + i·step). A step of 0 is a constant sentinel.
DEV u64 pattern(u64 seed, u64 step, u64 i) { return mix0(seed + i * step); }

// Fills n bytes with the pattern. Any grid, 256 threads.
GLOBAL BOUNDS(256) fill(u8* p, u64 n, u64 seed, u64 step) {
  for (u64 i = (u64)bidx * 256 + tid; i * 8 < n; i += (u64)nbidx * 256) {
    u64 w = pattern(seed, step, i);
    u8* to = p + 8 * i;
    if (n - 8 * i >= 8 && ((u64)to & 7) == 0) {
      *(u64*)to = w;
      continue;
    }
    for (int j = 0; j < 8 && 8 * i + j < n; j++) to[j] = (u8)(w >> (8 * j));
  }
}

// Compares n bytes with the pattern: out[0] += bytes that differ, out[1] =
// min(out[1], offset of the first). Any grid, 256 threads.
GLOBAL BOUNDS(256) compare(const u8* p, u64 n, u64 seed, u64 step, u64* out) {
  for (u64 i = (u64)bidx * 256 + tid; i * 8 < n; i += (u64)nbidx * 256) {
    u64 w = pattern(seed, step, i);
    u64 left = n - 8 * i;
    if (left < 8) w &= (1ull << (8 * left)) - 1;
    u64 diff = w ^ word(p + 8 * i, left), bad = 0, at = ~0ull;
    if (diff == 0) continue;
    for (int j = 7; j >= 0; j--)
      if (diff >> (8 * j) & 255) bad++, at = 8 * i + j;
    add(out, bad);
    asm volatile("red.global.min.u64 [%0],%1;" ::"l"(out + 1), "l"(at) : "memory");
  }
}

// One thread's share of a copy of n bytes among many.
DEV void copyBytes(u8* dst, const u8* src, u64 n, u64 from, u64 many) {
  u64 whole = (((u64)dst | (u64)src) & 15) == 0 ? n / 16 : 0;
  for (u64 i = from; i < whole; i += many) {
    V4 v;  // by hand: the compiler makes two accesses of it
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(src + 16 * i) : "memory");
    asm volatile("st.global.v4.u32 [%0],{%1,%2,%3,%4};" ::"l"(dst + 16 * i), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
  }
  for (u64 i = whole * 16 + from; i < n; i += many) dst[i] = src[i];
}

// dst = src, n bytes that do not overlap. Any grid, 256 threads.
GLOBAL BOUNDS(256) copy(u8* dst, const u8* src, u64 n) { copyBytes(dst, src, n, (u64)bidx * 256 + tid, (u64)nbidx * 256); }

// dst row r = src row ids[r], rows of n bytes. Grid R blocks of 128 threads.
GLOBAL BOUNDS(128) gather(u8* dst, const u8* src, const int* ids, u64 n) {
  copyBytes(dst + (u64)bidx * n, src + (u64)ids[bidx] * n, n, tid, 128);
}
