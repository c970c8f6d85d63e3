// What every kernel needs: the little of CUDA that clang wants declared when
// there are no CUDA headers, conversions, and the tensor-core instructions.
#pragma once

#define GLOBAL extern "C" __attribute__((global)) void
#define DEV static __attribute__((device)) inline __attribute__((always_inline))
#define SHARED static __attribute__((shared))
#define SHARED16 static __attribute__((shared, aligned(16)))
#define INLINE __attribute__((always_inline))
#define BOUNDS(n) __attribute__((launch_bounds(n)))
// At most n threads; few enough registers for m blocks on a processor, no fewer.
#define BOUNDS2(n, m) __attribute__((launch_bounds(n, m)))
#define UNROLL _Pragma("unroll")
#define tid ((int)__nvvm_read_ptx_sreg_tid_x())
#define bidx ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define bidy ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define bidz ((int)__nvvm_read_ptx_sreg_ctaid_z())
#define ntid ((int)__nvvm_read_ptx_sreg_ntid_x())
#define nbidx ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define nbidy ((int)__nvvm_read_ptx_sreg_nctaid_y())
#define SYNC() __syncthreads()
#define WARPSYNC() __nvvm_bar_warp_sync(0xffffffffu)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(8) V2 { u32 x, y; };
struct alignas(16) V4 { u32 x, y, z, w; };

// Element types, as types so that templates can tell them apart.
struct bf16 { u16 v; };
struct f16 { u16 v; };
typedef float f32;

DEV float asf(u32 u) { return __builtin_bit_cast(float, u); }
DEV u32 asu(float f) { return __builtin_bit_cast(u32, f); }
DEV float shx(float v, int m) { return asf(__nvvm_shfl_sync_bfly_i32(0xffffffffu, asu(v), m, 31)); }
DEV int shxi(int v, int m) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, m, 31); }
DEV u32 shat(u32 v, int l) { return __nvvm_shfl_sync_idx_i32(0xffffffffu, v, l, 31); }
DEV float exp2a(float x) { return __nvvm_ex2_approx_f(x); }
DEV float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEV float maxf(float a, float b) { return __builtin_fmaxf(a, b); }
DEV float absf(float a) { return __builtin_fabsf(a); }
DEV float inff() { return __builtin_inff(); }
DEV float divf(float a, float b) { float r; asm("div.full.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEV float sqrtf_rn(float a) { float r; asm("sqrt.rn.f32 %0,%1;" : "=f"(r) : "f"(a)); return r; }
DEV u32 prmt(u32 a, u32 b, u32 s) { u32 r; asm("prmt.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(s)); return r; }
DEV int mini(int a, int b) { return a < b ? a : b; }
DEV int maxi(int a, int b) { return a > b ? a : b; }

DEV float warpsum(float v) { UNROLL for (int m = 16; m; m >>= 1) v += shx(v, m); return v; }
DEV float warpmax(float v) { UNROLL for (int m = 16; m; m >>= 1) v = maxf(v, shx(v, m)); return v; }

// Widening is exact; narrowing rounds to nearest even.
DEV float tof(f32 v) { return v; }
DEV float tof(bf16 h) { return asf((u32)h.v << 16); }
DEV float tof(f16 h) { float f; asm("cvt.f32.f16 %0,%1;" : "=f"(f) : "h"(h.v)); return f; }
DEV void put(f32* p, float v) { *p = v; }
DEV void put(bf16* p, float f) { u16 h; asm("cvt.rn.bf16.f32 %0,%1;" : "=h"(h) : "f"(f)); p->v = h; }
DEV void put(f16* p, float f) { u16 h; asm("cvt.rn.f16.f32 %0,%1;" : "=h"(h) : "f"(f)); p->v = h; }
DEV u32 pack2(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }

// Asynchronous copies: bytes of the 16 that are not read become zero.
DEV u32 smem(const void* p) { u64 g; asm("cvta.to.shared.u64 %0,%1;" : "=l"(g) : "l"((u64)p)); return (u32)g; }
DEV void cp16(u32 dst, const void* src, int n) { asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(dst), "l"(src), "r"(n) : "memory"); }
DEV void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEV void waitg() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// c[16×8] += a[16×16] · b[16×8]. Lane 4g+t holds of a rows g, g+8 and of b
// column g, two neighbouring k a register; of c rows g, g+8, columns 2t, 2t+1.
DEV void mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
