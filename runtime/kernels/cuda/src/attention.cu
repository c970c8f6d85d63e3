// Attention over paged K/V: pages [blocks, KV heads, 16, dim], queries in a
// fused QKV tensor [T, (Q+2·KV)·dim] (only its Q columns are read).
//
// A row's context is cut into splits of 128 positions, counted from position 0.
// Within a split pages of 16 are taken in order with a running softmax; splits
// are merged in order. All kernels here keep to that, so that a row has the
// same bits whether it is decoded alone or sits in a chunk of a prompt. Pages
// that a row does not see change nothing in it.
//
// The tensor-core kernels (attn_split, attn_prefill) take bf16 pages, and
// queries in bf16 or f32. What is f32 is cut into two bf16 parts, queries and
// probabilities alike, whose products are added: far below the rounding of the
// pages. A warp takes 16 flat rows: flat row f of a sequence and K/V head is
// query f/G, Q head kv·G + f%G, with G = Q/KV. A work item is 4 ints: the
// sequence's row of tables, its first row in the batch, the item's first flat
// row, and how many flat rows the sequence has (its rows × G).
#include "weight.h"

#define DEVM __attribute__((device, always_inline))
#define PAGE 16
#define SPLIT 128
#define NEG (-1e30f)  // below any score; finite, so that differences are

struct alignas(8) Pair { float m, l; };  // a split's largest score and sum

template <typename X> struct Args {
  const X* qkv;
  const bf16* k;
  const bf16* v;
  const int* tables;  // [S, stride] pages of each sequence
  const int* pos;     // [T]
  const int* items;
  float* part;   // scratch, see the kernels
  Pair* ml;      // scratch
  int* arrived;  // scratch
  X* dst;        // [T, Q·dim]
  int stride, Q, KV, window;
  float scale;  // times log2 e
};

// (M, L) takes in a later split's (m, l); f[0], f[1] are the factors of the
// sums so far and of the split's.
DEV void merge(Pair& t, Pair n, float (&f)[2]) {
  float m = maxf(t.m, n.m);
  f[0] = exp2a(t.m - m), f[1] = exp2a(n.m - m);
  t.l = fma(t.l, f[0], n.l * f[1]);
  t.m = m;
}
DEV float mergeSum(float t, float n, const float (&f)[2]) { return fma(t, f[0], n * f[1]); }

// A load that stays where it is written, not hoisted out of the loop over pages.
DEV V4 load16(const void* p) {
  V4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

template <int N> struct Int { static const int value = N; };

// Two neighbours of a result.
DEV void put2(bf16* p, float x, float y) { *(u32*)p = pack2(x, y); }
DEV void put2(f32* p, float x, float y) { *(V2*)p = {asu(x), asu(y)}; }

// How a lane's sums lie: tiles of 8 columns come in groups of 8, then 4, 2 and
// 1, as wide as a lane's load of V: column c of tile j of a group of n from
// element base on is element base + c·n + j.
template <int D, typename F> DEV void eachGroup(F f) {
  UNROLL for (int base = 0; base + 64 <= D; base += 64) f(base, Int<8>{});
  if constexpr (D & 32) f(D & ~63, Int<4>{});
  if constexpr (D & 16) f(D & ~31, Int<2>{});
}

// 16 rows of one warp: lane 4g+t holds rows g and g+8. Heads of 256 are done in
// halves, whose sums fit into registers: a block takes the scores of all D
// elements, and of the values the V elements from v0 on.
template <int D, typename X> struct Rows {
  static const int V = D > 128 ? D / 2 : D;
  static const int P = __is_same(X, f32) ? 2 : 1;  // parts of queries and probabilities
  float o[V / 8][4], m[2], l[2];
  int v0;
  int qpos[2];     // positions of the two rows
  static const bool keep = D * P < 256;  // the queries in registers; else they are read for each page
  u32 q[P][keep ? D / 16 : 1][4];
  const X* qp[2];  // the two rows' queries, or null for zeros

  DEVM void reset() {
    UNROLL for (int i = 0; i < V / 8; i++) UNROLL for (int e = 0; e < 4; e++) o[i][e] = 0;
    UNROLL for (int h = 0; h < 2; h++) m[h] = NEG, l[h] = 0;
  }

  // Reads the queries of flat rows f0+g and f0+g+8. Rows past the last are
  // zero, at the last's position.
  DEVM void load(const Args<X>& a, int row0, int f0, int flats, int kv) {
    int g = (tid & 31) >> 2, G = a.Q / a.KV;
    UNROLL for (int h = 0; h < 2; h++) {
      int f = f0 + g + 8 * h;
      bool in = f < flats;
      if (!in) f = flats - 1;
      qpos[h] = a.pos[row0 + f / G];
      qp[h] = in ? a.qkv + (i64)(row0 + f / G) * (a.Q + 2 * a.KV) * D + (kv * G + f % G) * D : nullptr;
    }
    if constexpr (keep) UNROLL for (int k = 0; k < (D + 16) / 32; k++) {
      u32 now[P][2][4];
      queries(k, now);
      UNROLL for (int p = 0; p < P; p++) UNROLL for (int i = 0; i < 2; i++) UNROLL for (int e = 0; e < 4; e++)
        if (2 * k + i < D / 16) q[p][2 * k + i][e] = now[p][i][e];
    }
  }

  // The queries' elements 32k..32k+31, as two steps of an mma; of the last 16
  // where there are no more.
  DEVM void queries(int k, u32 (&a)[P][2][4]) {
    int t = tid & 3;
    UNROLL for (int h = 0; h < 2; h++) {
      u32 w[P][4] = {};
      const bool wide = 32 * k + 16 < D;
      const int n = wide ? 8 : 4;  // elements of this lane
      if (qp[h]) {
        const X* x = qp[h] + 32 * k + n * t;
        if constexpr (P == 1) {
          if (wide) {
            V4 v = load16(x);
            w[0][0] = v.x, w[0][1] = v.y, w[0][2] = v.z, w[0][3] = v.w;
          } else {
            V2 v = *(const V2*)x;
            w[0][0] = v.x, w[0][1] = v.y;
          }
        } else {
          UNROLL for (int i = 0; i < n / 4; i++) {
            V4 v = load16(x + 4 * i);
            cut2<P>(asf(v.x), asf(v.y), &w[0][2 * i], 4);
            cut2<P>(asf(v.z), asf(v.w), &w[0][2 * i + 1], 4);
          }
        }
      }
      UNROLL for (int p = 0; p < P; p++) {
        a[p][0][h] = w[p][0], a[p][0][2 + h] = w[p][1];
        a[p][1][h] = w[p][2], a[p][1][2 + h] = w[p][3];
      }
    }
  }

  // One page, of positions p0..p0+15; kAt(i) points to position i of it, vAt(i) to its
  // element v0; or have(i) says that the position is to be taken as zeros.
  template <typename H, typename FK, typename FV> DEVM void page(int p0, int window, float scale, H have, FK kAt, FV vAt) {
    int lane = tid & 31, g = lane >> 2, t = lane & 3;
    float s[2][4] = {};
    UNROLL for (int k = 0; k < (D + 16) / 32; k++) {
      u32 a[P][2][4];
      if constexpr (keep) {
        UNROLL for (int x = 0; x < P; x++) UNROLL for (int i = 0; i < 2; i++) UNROLL for (int e = 0; e < 4; e++)
          a[x][i][e] = 2 * k + i < D / 16 ? q[x][2 * k + i][e] : 0;
      } else {
        queries(k, a);
      }
      UNROLL for (int j = 0; j < 2; j++) {
        const bf16* p = kAt(8 * j + g) + 32 * k;
        bool in = have(8 * j + g);
        if (32 * k + 16 < D) {
          V4 w = {0, 0, 0, 0};
          if (in) w = *(const V4*)(p + 8 * t);
          UNROLL for (int x = 0; x < P; x++) {
            mma(s[j], a[x][0][0], a[x][0][1], a[x][0][2], a[x][0][3], w.x, w.y);
            mma(s[j], a[x][1][0], a[x][1][1], a[x][1][2], a[x][1][3], w.z, w.w);
          }
        } else {
          V2 w = {0, 0};
          if (in) w = *(const V2*)(p + 4 * t);
          UNROLL for (int x = 0; x < P; x++) mma(s[j], a[x][0][0], a[x][0][1], a[x][0][2], a[x][0][3], w.x, w.y);
        }
      }
    }
    UNROLL for (int h = 0; h < 2; h++) {
      float mx = m[h];
      bool see[4];
      UNROLL for (int i = 0; i < 4; i++) {
        int j = i >> 1, e = 2 * h + (i & 1), p = p0 + 8 * j + 2 * t + (i & 1);
        see[i] = p <= qpos[h] && (window == 0 || p > qpos[h] - window);
        s[j][e] = see[i] ? s[j][e] * scale : NEG;
        mx = maxf(mx, s[j][e]);
      }
      mx = maxf(mx, shx(mx, 1));
      mx = maxf(mx, shx(mx, 2));
      float f = exp2a(m[h] - mx), sum = 0;
      m[h] = mx;
      UNROLL for (int i = 0; i < 4; i++) {
        int j = i >> 1, e = 2 * h + (i & 1);
        s[j][e] = see[i] ? exp2a(s[j][e] - mx) : 0;
        sum += s[j][e];
      }
      l[h] = fma(l[h], f, sum);
      UNROLL for (int i = 0; i < V / 8; i++) o[i][2 * h] *= f, o[i][2 * h + 1] *= f;
    }
    u32 pr[P][4];
    UNROLL for (int i = 0; i < 4; i++) {
      float x = s[i >> 1][2 * (i & 1)], y = s[i >> 1][2 * (i & 1) + 1];
      if constexpr (P == 1) pr[0][i] = pack2(x, y);
      else cut2<P>(x, y, &pr[0][i], 4);
    }
    const bf16* vp[4];
    bool in[4];
    UNROLL for (int i = 0; i < 4; i++) {
      int p = 2 * t + (i & 1) + 8 * (i >> 1);
      vp[i] = vAt(p), in[i] = have(p);
    }
    eachGroup<V>([&](int base, auto width) INLINE {
      const int n = decltype(width)::value;
      u32 w[4][n / 2];
      UNROLL for (int i = 0; i < 4; i++) {
        const bf16* p = vp[i] + base + n * g;
        UNROLL for (int c = 0; c < n / 2; c++) w[i][c] = 0;
        if (!in[i]) continue;
        if constexpr (n == 8) {
          V4 x = *(const V4*)p;
          w[i][0] = x.x, w[i][1] = x.y, w[i][2] = x.z, w[i][3] = x.w;
        } else if constexpr (n == 4) {
          V2 x = *(const V2*)p;
          w[i][0] = x.x, w[i][1] = x.y;
        } else {
          w[i][0] = *(const u32*)p;
        }
      }
      UNROLL for (int j = 0; j < n; j++) {
        u32 pick = j & 1 ? 0x7632 : 0x5410;
        u32 b0 = prmt(w[0][j / 2], w[1][j / 2], pick), b1 = prmt(w[2][j / 2], w[3][j / 2], pick);
        UNROLL for (int x = 0; x < P; x++) mma(o[base / 8 + j], pr[x][0], pr[x][1], pr[x][2], pr[x][3], b0, b1);
      }
    });
  }

  // The row's sum over the split, in all four lanes that share it.
  DEVM Pair state(int h) {
    float v = l[h];
    v += shx(v, 1);
    v += shx(v, 2);
    return Pair{m[h], v};
  }

  // Calls f(element, tile, value number) for the pairs of sums of row h.
  template <typename F> DEVM void eachPair(int h, F f) {
    int t = tid & 3;
    eachGroup<V>([&](int base, auto width) INLINE {
      const int n = decltype(width)::value;
      UNROLL for (int c = 0; c < 2; c++)
        UNROLL for (int j = 0; j < n; j += 2)
          f(v0 + base + 2 * n * t + c * n + j, o[base / 8 + j][2 * h + c], o[base / 8 + j + 1][2 * h + c]);
    });
  }

  // dst = sums / l.
  DEVM void finish(int h, float sum, X* dst) {
    float inv = 1.0f / sum;
    eachPair(h, [&](int d, float x, float y) INLINE { put2(dst + d, x * inv, y * inv); });
  }
};

// A load of what other blocks have written.
DEV float fresh(const float* p) {
  float v;
  asm volatile("ld.volatile.global.f32 %0,[%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}

// Few rows: each warp of a block takes one split of 128 positions. Grid (items
// of 16 flat rows, twice for a dim of 256; KV; ⌈splits/4⌉), 128 threads; splits
// bounds those of the longest context. Where an item's rows see one split, dst
// is written; else part [T, Q, splits, D] and ml [halves, T·Q·splits], and
// whichever of an item's blocks comes last merges them, in order. arrived has a
// zero for each item and K/V head, and is left so.
template <int D, typename X> DEV void split(const Args<X>& a, int splits, int rows) {
  typedef Rows<D, X> R;
  SHARED int turn;
  const int halves = D / R::V;
  const int* it = a.items + 4 * (bidx / halves);
  int kv = bidy, sp = bidz * 4 + (tid >> 5), lane = tid & 31, G = a.Q / a.KV;
  int lastFlat = mini(it[2] + 15, it[3] - 1);
  int lastPos = a.pos[it[1] + lastFlat / G], firstPos = a.pos[it[1] + it[2] / G];
  int seen = a.window ? maxi(0, firstPos - a.window + 1) : 0;
  int first = seen / SPLIT, last = lastPos / SPLIT;  // splits of the item
  if (bidz < first / 4 || bidz > last / 4) return;
  Pair* ml = a.ml + (i64)(bidx % halves) * rows * a.Q * splits;
  const int v0 = bidx % halves * R::V;
  if (sp >= first && sp <= last) {
    R r;
    r.v0 = v0;
    r.reset();
    r.load(a, it[1], it[2], it[3], kv);
    int from = sp * SPLIT, to = mini(from + SPLIT, lastPos + 1);
    const int* table = a.tables + (i64)it[0] * a.stride;
    for (int p0 = maxi(from, seen & ~(PAGE - 1)); p0 < to; p0 += PAGE) {
      i64 at = ((i64)table[p0 / PAGE] * a.KV + kv) * PAGE * D;
      r.page(p0, a.window, a.scale, [&](int i) INLINE { return p0 + i <= lastPos; },
             [&](int i) INLINE { return a.k + at + i * D; },
             [&](int i) INLINE { return a.v + at + i * D + r.v0; });
    }
    UNROLL for (int h = 0; h < 2; h++) {
      int f = it[2] + (lane >> 2) + 8 * h;
      Pair st = r.state(h);
      if (f >= it[3]) continue;  // bounds
      i64 to = (i64)(it[1] + f / G) * a.Q + kv * G + f % G;
      if (first == last) {
        r.finish(h, st.l, a.dst + to * D);
        continue;
      }
      to = to * splits + sp;
      if ((lane & 3) == 0) ml[to] = st;
      r.eachPair(h, [&](int d, float x, float y) INLINE { *(V2*)(a.part + to * D + d) = {asu(x), asu(y)}; });
    }
  }
  if (first == last) return;
  SYNC();  // barrier: the block's results are written
  int want = last / 4 - first / 4 + 1;
  if (want > 1) {
    if (tid == 0) {
      int* mine = a.arrived + bidx * a.KV + kv;
      int n;
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      asm volatile("atom.global.add.u32 %0,[%1],1;" : "=r"(n) : "l"(mine) : "memory");
      turn = n;
      if (n == want - 1) {
        // Acquired by the thread that has read the counter; the barrier hands it on.
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        *mine = 0;
      }
    }
    SYNC();  // barrier: turn is known, and what the other blocks wrote
    if (turn != want - 1) return;
  }
  for (int i = tid; i < 16 * R::V; i += 128) {
    int f = it[2] + i / R::V, d = v0 + i % R::V;
    if (f >= it[3]) return;  // bounds
    int row = it[1] + f / G, p = a.pos[row], from = a.window ? maxi(0, p - a.window + 1) / SPLIT : 0;
    i64 to = (i64)row * a.Q + kv * G + f % G, s = to * splits + from;
    Pair t = {fresh(&ml[s].m), fresh(&ml[s].l)};
    float o = fresh(a.part + s * D + d);
    for (int n = from + 1; n <= p / SPLIT; n++) {
      s++;
      float x[2];
      merge(t, Pair{fresh(&ml[s].m), fresh(&ml[s].l)}, x);
      o = mergeSum(o, fresh(a.part + s * D + d), x);
    }
    put(a.dst + to * D + d, o * (1.0f / t.l));
  }
}

// Merges the splits that a row sees: of part, ml as attn_any left them. Grid (T, Q), 128 threads.
template <typename X>
DEV void combine(const float* part, const Pair* ml, const int* pos, X* dst, int dim, int window, int split0, int splits) {
  int p = pos[bidx], from = window ? maxi(0, p - window + 1) / SPLIT : 0;
  i64 at = (i64)bidx * nbidy + bidy;
  for (int d = tid; d < dim; d += 128) {
    i64 i = at * splits + from - split0;
    Pair t = ml[i];
    float o = part[i * dim + d];
    for (int s = from + 1; s <= p / SPLIT; s++) {
      i++;
      float f[2];
      merge(t, ml[i], f);
      o = mergeSum(o, part[i * dim + d], f);
    }
    put(dst + at * dim + d, o * (1.0f / t.l));
  }
}
GLOBAL BOUNDS(128) attn_combine_bf16(const float* part, const Pair* ml, const int* pos, bf16* dst, int dim, int window, int split0, int splits) {
  combine(part, ml, pos, dst, dim, window, split0, splits);
}
GLOBAL BOUNDS(128) attn_combine_f32(const float* part, const Pair* ml, const int* pos, f32* dst, int dim, int window, int split0, int splits) {
  combine(part, ml, pos, dst, dim, window, split0, splits);
}

// Many rows: a block takes 64 flat rows, 16 a warp, through all pages that they
// see, which come by asynchronous copies, two pages in flight. Grid (items of
// 64 flat rows, twice for a dim of 256; KV), 128 threads. part [T, Q, D] is scratch for the sums of the
// splits so far; it is used only where a block sees more than one.
template <int D, typename X> DEV void prefill(const Args<X>& a) {
  typedef Rows<D, X> R;
  const int KS = D + (64 - 2 * D % 128 + 128) % 128 / 2, V = R::V, VS = V + (16 - 2 * V % 128 + 128) % 128 / 2;  // against bank conflicts
  SHARED16 bf16 sk[2][PAGE][KS];
  SHARED16 bf16 sv[2][PAGE][VS];
  const int* it = a.items + 4 * (bidx / (D / V));
  int kv = bidy, warp = tid >> 5, lane = tid & 31, G = a.Q / a.KV;
  int flats = it[3], f0 = it[2] + warp * 16;
  R r;
  r.v0 = bidx % (D / V) * V;
  r.reset();
  r.load(a, it[1], f0, flats, kv);
  auto at = [&](int flat) INLINE { return a.pos[it[1] + mini(flat, flats - 1) / G]; };
  int lastPos = at(it[2] + 63), firstPos = at(it[2]), warpFirst = at(f0), warpLast = at(f0 + 15);
  int seen = a.window ? maxi(0, firstPos - a.window + 1) & ~(PAGE - 1) : 0;
  const int* table = a.tables + (i64)it[0] * a.stride;
  auto load = [&](int st, int p0) INLINE {
    i64 base = ((i64)table[p0 / PAGE] * a.KV + kv) * PAGE * D;
    for (int i = tid; i < PAGE * D / 8; i += 128) {
      int p = i / (D / 8), c = i % (D / 8) * 8, n = p0 + p <= lastPos ? 16 : 0;
      cp16(smem(&sk[st][p][c]), a.k + base + p * D + c, n);
      if (V == D) cp16(smem(&sv[st][p][c]), a.v + base + p * D + c, n);
    }
    if (V == D) return;
    for (int i = tid; i < PAGE * V / 8; i += 128) {
      int p = i / (V / 8), c = i % (V / 8) * 8;
      cp16(smem(&sv[st][p][c]), a.v + base + p * D + r.v0 + c, p0 + p <= lastPos ? 16 : 0);
    }
  };
  load(0, seen);
  commit();
  Pair total[2] = {{NEG, 0}, {NEG, 0}};
  bool first = true;
  for (int p0 = seen, st = 0; p0 <= lastPos; p0 += PAGE, st ^= 1) {
    waitg<0>();
    SYNC();  // barrier: the page is there, and the other one is done with
    if (p0 + PAGE <= lastPos) load(st ^ 1, p0 + PAGE);
    commit();
    if (p0 <= warpLast && (a.window == 0 || p0 + PAGE > warpFirst - a.window + 1))
      r.page(p0, a.window, a.scale, [](int) INLINE { return true; },
             [&](int i) INLINE { return (const bf16*)&sk[st][i][0]; },
             [&](int i) INLINE { return (const bf16*)&sv[st][i][0]; });
    bool end = p0 + PAGE > lastPos;
    if (!end && (p0 + PAGE) % SPLIT != 0) continue;
    UNROLL for (int h = 0; h < 2; h++) {
      int f = f0 + (lane >> 2) + 8 * h;
      Pair now = r.state(h);
      bool in = f < flats;
      i64 to = ((i64)(it[1] + f / G) * a.Q + kv * G + f % G) * D;
      float x[2] = {0, 1};
      if (first) total[h] = now;
      else merge(total[h], now, x);
      if (!in) continue;  // bounds
      float* mine = a.part + to;
      float inv = 1.0f / total[h].l;
      r.eachPair(h, [&](int d, float u, float v) INLINE {
        if (!first) {
          V2 old = *(const V2*)(mine + d);
          u = mergeSum(asf(old.x), u, x), v = mergeSum(asf(old.y), v, x);
        }
        if (end) put2(a.dst + to + d, u * inv, v * inv);
        else *(V2*)(mine + d) = {asu(u), asu(v)};
      });
    }
    first = false;
    r.reset();
  }
}

#define ATTN(D, X)                                                                                                          \
  GLOBAL BOUNDS2(128, 2) attn_split_##D##_##X(const X* qkv, const bf16* k, const bf16* v, const int* tables, const int* pos, \
                                              const int* items, float* part, Pair* ml, int* arrived, X* dst, int stride,     \
                                              int q, int kv, int window, float scale, int splits, int rows) {                \
    split<D, X>(Args<X>{qkv, k, v, tables, pos, items, part, ml, arrived, dst, stride, q, kv, window, scale * 1.44269504f},   \
                splits, rows);                                                                                               \
  }                                                                                                                          \
  GLOBAL BOUNDS2(128, 2) attn_prefill_##D##_##X(const X* qkv, const bf16* k, const bf16* v, const int* tables,               \
                                                const int* pos, const int* items, float* part, X* dst, int stride, int q,    \
                                                int kv, int window, float scale) {                                           \
    prefill<D, X>(Args<X>{qkv, k, v, tables, pos, items, part, nullptr, nullptr, dst, stride, q, kv, window,                 \
                          scale * 1.44269504f});                                                                             \
  }
ATTN(32, bf16)
ATTN(64, bf16)
ATTN(80, bf16)
ATTN(96, bf16)
ATTN(128, bf16)
ATTN(256, bf16)
ATTN(32, f32)
ATTN(64, f32)
ATTN(80, f32)
ATTN(96, f32)
ATTN(128, f32)
ATTN(256, f32)

#define MAXDIM 256

// Attention in f32 throughout, for any dim ≤ 256: a warp takes one row, Q head
// and split; seq [T] is each row's row of tables. Grid (T, Q, splits), 32
// threads; part and ml as from attn_split, always for attn_combine.
template <typename C, typename X>
DEV void any(const X* qkv, const C* kp, const C* vp, const int* tables, const int* pos, const int* seq, float* part, Pair* ml,
             int stride, int Q, int KV, int dim, int window, float scale, int split0, int splits) {
  SHARED float q[MAXDIM];
  int row = bidx, head = bidy, sp = split0 + bidz, lane = tid, kv = head / (Q / KV);
  int last = pos[row], from = maxi(sp * SPLIT, window ? last - window + 1 : 0), to = mini((sp + 1) * SPLIT, last + 1);
  if (from >= to) return;
  const X* x = qkv + (i64)row * (Q + 2 * KV) * dim + head * dim;
  for (int d = lane; d < dim; d += 32) q[d] = tof(x[d]);
  WARPSYNC();
  const int* table = tables + (i64)seq[row] * stride;
  float m = NEG, l = 0, o[MAXDIM / 32] = {};
  for (int p0 = sp * SPLIT; p0 < to; p0 += 32) {  // the same 32 whatever the window
    if (p0 + 32 <= from) continue;
    int p = p0 + lane;
    bool see = p >= from && p < to;
    i64 at = 0;
    float s = 0;
    if (see) {
      at = (((i64)table[p / PAGE] * KV + kv) * PAGE + p % PAGE) * dim;
      for (int d = 0; d < dim; d++) s = fma(q[d], tof(kp[at + d]), s);
    }
    s = see ? s * scale : NEG;
    float mx = maxf(m, warpmax(s)), f = exp2a(m - mx), e = see ? exp2a(s - mx) : 0;
    m = mx;
    l = fma(l, f, warpsum(e));
    UNROLL for (int i = 0; i < MAXDIM / 32; i++) o[i] *= f;
    for (int j = maxi(from, p0); j < mini(to, p0 + 32); j++) {
      float w = asf(shat(asu(e), j - p0));
      i64 v = (i64)(u64)shat((u32)(u64)at, j - p0) | (i64)(u64)shat((u32)((u64)at >> 32), j - p0) << 32;
      UNROLL for (int i = 0; i < MAXDIM / 32; i++) {
        int d = lane + 32 * i;
        if (d < dim) o[i] = fma(w, tof(vp[v + d]), o[i]);
      }
    }
  }
  i64 out = ((i64)row * Q + head) * splits + bidz;
  if (lane == 0) ml[out] = Pair{m, l};
  UNROLL for (int i = 0; i < MAXDIM / 32; i++)
    if (lane + 32 * i < dim) part[out * dim + lane + 32 * i] = o[i];
}

#define ANY(C, X)                                                                                                           \
  GLOBAL BOUNDS(32) attn_any_##C##_##X(const X* qkv, const C* k, const C* v, const int* tables, const int* pos,              \
                                       const int* seq, float* part, Pair* ml, int stride, int q, int kv, int dim,            \
                                       int window, float scale, int split0, int splits) {                                   \
    any<C, X>(qkv, k, v, tables, pos, seq, part, ml, stride, q, kv, dim, window, scale * 1.44269504f, split0, splits);        \
  }
ANY(bf16, bf16)
ANY(bf16, f32)
ANY(f32, f32)
