package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

const split = 128 // positions; SPLIT in src/attention.cu

// scene is a batch of sequences whose K/V lies in shuffled pages.
type scene struct {
	*gpu
	h           kernels.Heads
	act, kv     tensor.DType
	batch       kernels.Batch
	qkv         []byte
	k, v        []byte // of the pages
	qkvAt       uint64
	kAt, vAt    uint64
	tables, pos uint64
	seqs        uint64 // of each row
	stride      int
	splits      int
}

// newScene makes sequences of these contexts, whose last rows are the batch.
// What lies behind a context in its last page was never written.
func newScene(t testing.TB, h kernels.Heads, act, kv tensor.DType, contexts, rows []int) *scene {
	s := &scene{gpu: newGPU(t), h: h, act: act, kv: kv}
	b := &s.batch
	b.Starts = []int32{0}
	blocks, longest := 1, 0
	for _, n := range contexts {
		blocks += (n + 15) / 16
		longest = max(longest, n)
	}
	s.stride, s.splits = (longest+15)/16, (longest+split-1)/split
	free := s.rng.Perm(blocks)
	var seqs, flat []int32
	for i, n := range contexts {
		var table []int32
		for range (n + 15) / 16 {
			table = append(table, int32(free[0]))
			free = free[1:]
		}
		b.BlockTables = append(b.BlockTables, table)
		row := make([]int32, s.stride)
		for j := range row {
			row[j] = -1 // reading on is an illegal address
		}
		copy(row, table)
		flat = append(flat, row...)
		for p := n - rows[i]; p < n; p++ {
			b.Positions = append(b.Positions, int32(p))
			seqs = append(seqs, int32(i))
		}
		b.Starts = append(b.Starts, int32(len(b.Positions)))
		b.Contexts = append(b.Contexts, int32(n))
	}
	size := kv.Bits() / 8
	page := 16 * h.Dim * size
	s.kAt, s.k = s.alloc("K pages", blocks*h.KV*page)
	s.vAt, s.v = s.alloc("V pages", blocks*h.KV*page)
	for i, at := range []uint64{s.kAt, s.vAt} {
		r := s.regions[len(s.regions)-2+i]
		if r.Base != at {
			t.Fatal("regions are not in order")
		}
		for j, n := range contexts {
			for q, block := range b.BlockTables[j] {
				for head := range h.KV {
					n := min(16, n-16*q) * h.Dim
					to := (int(block)*h.KV + head) * page
					copy(r.Data[to:], encode(kv, s.random(n, 1)))
					for x := range n * size {
						r.Init[to+x] = 1
					}
				}
			}
		}
	}
	s.qkv = encode(act, s.random(len(b.Positions)*h.Cols(), 1))
	s.qkvAt = s.put("qkv", s.qkv)
	s.tables, s.pos, s.seqs = s.ints("tables", flat), s.ints("positions", b.Positions), s.ints("sequences", seqs)
	return s
}

func (s *scene) rows() int { return len(s.batch.Positions) }

func (s *scene) scale() float32 { return float32(1 / math.Sqrt(float64(s.h.Dim))) }

// items cuts every sequence's flat rows into pieces of n.
func (s *scene) items(n int) (addr uint64, count int) {
	var v []int32
	for i := range s.batch.BlockTables {
		lo, hi := s.batch.Starts[i], s.batch.Starts[i+1]
		flats := (hi - lo) * int32(s.h.Q/s.h.KV)
		for f := int32(0); f < flats; f += int32(n) {
			v = append(v, int32(i), lo, f, flats)
			count++
		}
	}
	return s.ints("items", v), count
}

// halves is how many blocks share an item.
func (s *scene) halves() int { return 1 + s.h.Dim/256 }

// scratch is memory for the parts of splits.
func (s *scene) scratch(splits int) (part, ml uint64) {
	n := s.rows() * s.h.Q * splits
	part, _ = s.alloc("part", n*s.h.Dim*4)
	ml, _ = s.alloc("ml", n*8)
	return part, ml
}

func (s *scene) dst() (uint64, []byte) { return s.alloc("dst", s.rows()*s.h.Q*s.h.Dim*s.act.Bits()/8) }

func (s *scene) combine(part, ml, dst uint64, window, split0, splits int) {
	s.t.Helper()
	s.launch(kernel(s.t, "attention", "attn_combine_"+suffix(s.act)), [3]int{s.rows(), s.h.Q, 1}, 128,
		part, ml, s.pos, dst, s.h.Dim, window, split0, splits)
}

// prefill is attention by the kernel for many rows.
func (s *scene) prefill(window int) []byte {
	s.t.Helper()
	items, n := s.items(64)
	part, _ := s.scratch(1)
	dst, got := s.dst()
	s.launch(kernel(s.t, "attention", fmt.Sprintf("attn_prefill_%d_%s", s.h.Dim, suffix(s.act))), [3]int{n * s.halves(), s.h.KV, 1}, 128,
		s.qkvAt, s.kAt, s.vAt, s.tables, s.pos, items, part, dst, s.stride, s.h.Q, s.h.KV, window, s.scale())
	return got
}

// decode is attention by the kernel for few rows; room for more splits than
// there are changes nothing.
func (s *scene) decode(window int) []byte {
	s.t.Helper()
	splits := s.splits + s.rng.IntN(6)
	items, n := s.items(16)
	dst, got := s.dst()
	part, _ := s.alloc("part", s.rows()*s.h.Q*splits*s.h.Dim*4)
	ml, _ := s.alloc("ml", s.halves()*s.rows()*s.h.Q*splits*8)
	zeros := make([]byte, 4*n*s.halves()*s.h.KV)
	arrived := s.fill("arrived", zeros)
	s.launch(kernel(s.t, "attention", fmt.Sprintf("attn_split_%d_%s", s.h.Dim, suffix(s.act))), [3]int{n * s.halves(), s.h.KV, (splits + 3) / 4}, 128,
		s.qkvAt, s.kAt, s.vAt, s.tables, s.pos, items, part, ml, arrived, dst, s.stride, s.h.Q, s.h.KV, window, s.scale(), splits, s.rows())
	if s.err == nil {
		sameBytes(s.t, "the counters", s.bytes(arrived), zeros)
	}
	return got
}

// any is attention by the kernel for all types and sizes.
func (s *scene) any(window int) []byte {
	s.t.Helper()
	split0 := 0
	if window > 0 {
		split0 = math.MaxInt
		for _, p := range s.batch.Positions {
			split0 = min(split0, max(0, int(p)-window+1)/split)
		}
	}
	splits := s.splits - split0
	part, ml := s.scratch(splits)
	dst, got := s.dst()
	s.launch(kernel(s.t, "attention", "attn_any_"+suffix(s.kv)+"_"+suffix(s.act)), [3]int{s.rows(), s.h.Q, splits}, 32,
		s.qkvAt, s.kAt, s.vAt, s.tables, s.pos, s.seqs, part, ml, s.stride, s.h.Q, s.h.KV, s.h.Dim, window, s.scale(), split0, splits)
	s.combine(part, ml, dst, window, split0, splits)
	return got
}

func (s *scene) want(window int) []float32 {
	shape := tensor.Of(len(s.k)/(s.h.KV*16*s.h.Dim*s.kv.Bits()/8), s.h.KV, 16, s.h.Dim)
	a := kernels.AttentionArgs{
		Dst: s.tensor(tensor.F32, tensor.Of(s.rows(), s.h.Q*s.h.Dim), nil), QKV: s.tensor(s.act, tensor.Of(s.rows(), s.h.Cols()), s.qkv),
		Heads: s.h, KV: kernels.KVLayer{K: s.tensor(s.kv, shape, s.k), V: s.tensor(s.kv, shape, s.v)}, Window: window, Scale: s.scale(),
	}
	s.ref.Begin(&s.batch)
	s.ref.Attention(a)
	return s.refFloats(a.Dst)
}

// one is the same scene with only one row.
func (s *scene) one(row int) *scene {
	o := *s
	seq := 0
	for int(s.batch.Starts[seq+1]) <= row {
		seq++
	}
	o.batch.Positions = s.batch.Positions[row : row+1]
	o.batch.Starts = []int32{0, 1}
	o.batch.BlockTables = s.batch.BlockTables[seq : seq+1]
	size := s.h.Cols() * s.act.Bits() / 8
	o.qkv = s.qkv[row*size : (row+1)*size]
	table := s.bytes(s.tables)[seq*s.stride*4 : (seq+1)*s.stride*4]
	o.qkvAt, o.tables = o.put("one qkv", o.qkv), o.put("one table", table)
	o.pos, o.seqs = o.ints("one position", o.batch.Positions), o.put("one sequence", binary.LittleEndian.AppendUint32(nil, 0))
	o.splits = int(o.batch.Positions[0])/split + 1
	return &o
}

type attentionCase struct {
	h              kernels.Heads
	contexts, rows []int
	window         int
}

var attentionCases = []attentionCase{
	{kernels.Heads{Q: 6, KV: 2, Dim: 64}, []int{5, 150, 17, 1}, []int{5, 30, 1, 1}, 0},
	{kernels.Heads{Q: 2, KV: 1, Dim: 80}, []int{129, 16}, []int{3, 16}, 0},
	{kernels.Heads{Q: 2, KV: 2, Dim: 96}, []int{40}, []int{7}, 0},
	{kernels.Heads{Q: 8, KV: 2, Dim: 128}, []int{300, 128}, []int{20, 2}, 100},
	{kernels.Heads{Q: 3, KV: 1, Dim: 256}, []int{140}, []int{25}, 20},
	{kernels.Heads{Q: 2, KV: 1, Dim: 64}, []int{4096}, []int{2}, 0},
	{kernels.Heads{Q: 1, KV: 1, Dim: 128}, []int{4090}, []int{1}, 1000},
}

func TestAttention(t *testing.T) {
	cases := append([]attentionCase{{kernels.Heads{Q: 6, KV: 2, Dim: 32}, []int{9, 700}, []int{3, 2}, 0}}, attentionCases...)
	if sweep {
		for _, dim := range []int{64, 80, 96, 128, 256} {
			for _, g := range []int{1, 4, 7, 24} {
				cases = append(cases,
					attentionCase{kernels.Heads{Q: 2 * g, KV: 2, Dim: dim}, []int{4096, 33}, []int{2, 33}, 0},
					attentionCase{kernels.Heads{Q: g, KV: 1, Dim: dim}, []int{700, 200}, []int{70, 200}, 130})
			}
		}
	}
	for i, c := range brief(cases, 5) {
		act, bound := tensor.BF16, 1.0/128
		if i%2 == 0 {
			act, bound = tensor.F32, 1.0/(1<<14) // of two bf16 parts, cut off
		}
		t.Run(fmt.Sprintf("%+v %v", c, act), func(t *testing.T) {
			s := newScene(t, c.h, act, tensor.BF16, c.contexts, c.rows)
			want := s.want(c.window)
			got := s.prefill(c.window)
			near(t, "prefill", decode(s.act, got), want, s.act, func(int) float64 { return bound })
			sameBytes(t, "decode", s.decode(c.window), got)
			size := c.h.Q * c.h.Dim * act.Bits() / 8
			for _, r := range []int{0, s.rows() / 2, s.rows() - 1} {
				o := s.one(r)
				sameBytes(t, fmt.Sprintf("row %d decoded alone", r), o.decode(c.window), got[r*size:(r+1)*size])
				sameBytes(t, fmt.Sprintf("row %d alone", r), o.prefill(c.window), got[r*size:(r+1)*size])
			}
		})
	}
}

func TestAttentionAny(t *testing.T) {
	for i, c := range []attentionCase{
		{kernels.Heads{Q: 4, KV: 2, Dim: 16}, []int{5, 150, 17, 1}, []int{5, 4, 1, 1}, 0},
		{kernels.Heads{Q: 3, KV: 1, Dim: 80}, []int{129, 33}, []int{3, 1}, 0},
		{kernels.Heads{Q: 2, KV: 1, Dim: 256}, []int{290}, []int{2}, 100},
		{kernels.Heads{Q: 2, KV: 1, Dim: 10}, []int{300}, []int{2}, 10},
	} {
		for j, types := range [][2]tensor.DType{{tensor.BF16, tensor.BF16}, {tensor.BF16, tensor.F32}, {tensor.F32, tensor.F32}} {
			if (i+j)%2 == 1 && !sweep {
				continue
			}
			s := newScene(t, c.h, types[1], types[0], c.contexts, c.rows)
			got := s.any(c.window)
			what := fmt.Sprintf("%+v %v", c, types)
			near(t, what, decode(s.act, got), s.want(c.window), s.act, func(int) float64 { return 160 * epsilon })
			size := len(got) / s.rows()
			o := s.one(s.rows() - 1)
			sameBytes(t, what+" alone", o.any(c.window), got[len(got)-size:])
		}
	}
}
