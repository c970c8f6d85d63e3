// What the kernels need of CUDA, for clang without the CUDA headers.
#pragma once
#ifdef __CUDACC_RTC__
#define GLOBAL extern "C" __global__ void
#define DEV static __device__ inline
#define SHARED __shared__
#define SHARED16 __shared__ __align__(16)
#define BOUNDS(n) __launch_bounds__(n)
#define tid ((int)threadIdx.x)
#define bid ((int)blockIdx.x)
#define bidy ((int)blockIdx.y)
#define ntid ((int)blockDim.x)
#define nbid ((int)gridDim.x)
#define nbidy ((int)gridDim.y)
#define inff() __int_as_float(0x7f800000)
#define warpsync() __syncwarp()
#define atomic_add(p, v) atomicAdd(p, v)
#else
#define GLOBAL extern "C" __attribute__((global)) void
#define DEV static __attribute__((device)) inline
#define SHARED static __attribute__((shared))
#define SHARED16 static __attribute__((shared, aligned(16)))
#define BOUNDS(n) __attribute__((launch_bounds(n)))
#define tid ((int)__nvvm_read_ptx_sreg_tid_x())
#define bid ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define bidy ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define ntid ((int)__nvvm_read_ptx_sreg_ntid_x())
#define nbid ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define nbidy ((int)__nvvm_read_ptx_sreg_nctaid_y())
#define inff() __builtin_inff()
#define warpsync() __nvvm_bar_warp_sync(0xffffffffu)
#define atomic_add(p, v) __nvvm_atom_add_gen_ll((long long*)(p), v)
#endif
#define DYNAMIC(type, name) extern __attribute__((shared)) type name[]
#define SYNC() __syncthreads()
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
struct alignas(16) V4 { u32 x, y, z, w; };

#ifdef __CUDACC_RTC__
DEV float asf(u32 u) { return __uint_as_float(u); }
DEV u32 asu(float f) { return __float_as_uint(f); }
DEV float shx(float v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
DEV int shxi(int v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
DEV float rsq(float x) { return rsqrtf(x); }
DEV float exp2a(float x) { return exp2f(x); }
DEV float maxf(float a, float b) { return fmaxf(a, b); }
#else
DEV float asf(u32 u) { return __builtin_bit_cast(float, u); }
DEV u32 asu(float f) { return __builtin_bit_cast(u32, f); }
DEV float shx(float v, int m) { return asf(__nvvm_shfl_sync_bfly_i32(0xffffffffu, asu(v), m, 31)); }
DEV int shxi(int v, int m) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, m, 31); }
DEV float rsq(float x) { return __nvvm_rsqrt_approx_f(x); }
DEV float exp2a(float x) { return __nvvm_ex2_approx_f(x); }
DEV float maxf(float a, float b) { return __builtin_fmaxf(a, b); }
#endif
DEV float warpsum(float v) { for (int m = 16; m; m >>= 1) v += shx(v, m); return v; }
DEV float warpmax(float v) { for (int m = 16; m; m >>= 1) v = maxf(v, shx(v, m)); return v; }

DEV float bf2f(u16 h) { return asf((u32)h << 16); }
DEV u16 f2bf(float f) { u16 h; asm("cvt.rn.bf16.f32 %0,%1;" : "=h"(h) : "f"(f)); return h; }
DEV float h2f(u16 h) { float f; asm("cvt.f32.f16 %0,%1;" : "=f"(f) : "h"(h)); return f; }
DEV u16 f2h(float f) { u16 h; asm("cvt.rn.f16.f32 %0,%1;" : "=h"(h) : "f"(f)); return h; }
DEV u32 smem(const void* p) { u64 g; asm("cvta.to.shared.u64 %0,%1;" : "=l"(g) : "l"((u64)p)); return (u32)g; }
DEV void cp16(u32 dst, const void* src) { asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dst), "l"(src)); }
DEV void cp16z(u32 dst, const void* src, int n) { asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(dst), "l"(src), "r"(n)); }
DEV void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEV void waitg() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
DEV void ldm4(u32 (&r)[4], u32 p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory"); }
DEV void ldm2(u32 (&r)[2], u32 p) { asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(p) : "memory"); }
DEV void ldm2t(u32 (&r)[2], u32 p) { asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(p) : "memory"); }
DEV void mma_bf16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEV u32 pack2(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
