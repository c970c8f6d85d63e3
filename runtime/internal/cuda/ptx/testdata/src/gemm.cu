// Tensor-core matrix product with a pipeline of asynchronous copies.
#include "shim.h"

#define BM 64
#define BN 64
#define BK 32
#define STAGES 3
#define LD (BK + 8)  // padded against bank conflicts

// C[M×N] = A[M×K] · B[N×K]ᵀ, bf16 in, f32 out; K a multiple of 32, M and N any.
// 4 warps: each 32 rows by 32 columns.
GLOBAL BOUNDS(128) gemm_bf16(const u16* A, const u16* B, float* C, int M, int N, int K) {
  SHARED16 u16 sa[STAGES][BM][LD];
  SHARED16 u16 sb[STAGES][BN][LD];
  int m0 = bidy * BM, n0 = bid * BN, warp = tid >> 5, lane = tid & 31;
  int wm = (warp >> 1) * 32, wn = (warp & 1) * 32;
  auto load = [&](int stage, int k0) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int c = tid + 128 * i, r = c >> 2, col = (c & 3) * 8;
      int ra = m0 + r < M ? m0 + r : 0, rb = n0 + r < N ? n0 + r : 0;
      cp16z(smem(&sa[stage][r][col]), A + (long)ra * K + k0 + col, m0 + r < M ? 16 : 0);
      cp16z(smem(&sb[stage][r][col]), B + (long)rb * K + k0 + col, n0 + r < N ? 16 : 0);
    }
  };
  float acc[2][4][4] = {};
  int tiles = K / BK;
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < tiles) load(s, s * BK);
    commit();
  }
  for (int t = 0; t < tiles; t++) {
    waitg<STAGES - 2>();  // mutate:wait
    SYNC();               // mutate:barrier
    int st = t % STAGES;
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      u32 a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++) ldm4(a[i], smem(&sa[st][wm + 16 * i + (lane & 15)][kk + (lane >> 4) * 8]));
#pragma unroll
      for (int j = 0; j < 4; j++) ldm2(b[j], smem(&sb[st][wn + 8 * j + (lane & 7)][kk + ((lane >> 3) & 1) * 8]));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) mma_bf16(acc[i][j], a[i], b[j]);
    }
    int next = t + STAGES - 1;
    if (next < tiles) load(next % STAGES, next * BK);
    commit();
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int r = m0 + wm + 16 * i + (lane >> 2) + 8 * (e >> 1), c = n0 + wn + 8 * j + (lane & 3) * 2 + (e & 1);
        if (r < M && c < N) C[(long)r * N + c] = acc[i][j][e];  // mutate:bounds
      }
}
