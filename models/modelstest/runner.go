package modelstest

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kvcache"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Options of a Runner.
type Options struct {
	Format    kernels.Format
	MaxTokens int   // rows in a step
	Positions int   // of the longest sequence
	Blocks    int   // K/V pages
	Cuts      []int // layers that begin a further stage
	Away      bool  // mixtures of experts at a place of their own, on the same backend
}

// Runner runs a model, cut into stages that lie on one backend.
type Runner struct {
	Model  models.Model
	t      testing.TB
	b      kernels.Backend
	stream device.Stream
	ops    kernels.Ops
	stages []models.Stage
	caches []*kvcache.Cache
	hidden tensor.Tensor
	logits tensor.Tensor
	free   []int32 // pages, shuffled
}

// New loads the checkpoint's model. The test fails if anything does.
func New(t testing.TB, ck *loader.Checkpoint, b kernels.Backend, o Options) *Runner {
	t.Helper()
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Model: m, t: t, b: b}
	cfg := m.Config()
	r.stream, err = b.Device().NewStream()
	r.must(err)
	t.Cleanup(func() { r.must(r.stream.Close()) })
	r.ops, err = b.NewOps(r.stream)
	r.must(err)
	var away *models.Place
	if o.Away {
		away = r.place()
	}
	bounds := append(append([]int{0}, o.Cuts...), cfg.Layers)
	for i, lo := range bounds[:len(bounds)-1] {
		hi := bounds[i+1]
		s, err := m.Load(t.Context(), models.LoadOptions{
			Lo: lo, Hi: hi, Embed: i == 0, Head: i == len(bounds)-2,
			Checkpoint: ck, Backend: b, Stream: r.stream, Format: o.Format,
			MaxTokens: o.MaxTokens, MaxLogits: o.MaxTokens, MaxPositions: o.Positions, Experts: away,
		})
		r.must(err)
		t.Cleanup(func() { r.must(s.Close()) })
		c, err := kvcache.NewCache(b, hi-lo, o.Blocks, cfg.Heads)
		r.must(err)
		t.Cleanup(func() { r.must(c.Close()) })
		r.stages, r.caches = append(r.stages, s), append(r.caches, c)
	}
	r.hidden = r.alloc(b.ActType(), o.MaxTokens, cfg.Hidden)
	r.logits = r.alloc(tensor.F32, o.MaxTokens, cfg.VocabSize)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(o.Blocks) {
		r.free = append(r.free, int32(i))
	}
	return r
}

// place is a second stream of the backend, and copies between the two.
func (r *Runner) place() *models.Place {
	s, err := r.b.Device().NewStream()
	r.must(err)
	r.t.Cleanup(func() { r.must(s.Close()) })
	ops, err := r.b.NewOps(s)
	r.must(err)
	move := func(dst, src tensor.Tensor, to, from device.Stream) {
		raw := make([]byte, src.Bytes())
		from.Download(raw, src)
		r.must(from.Sync(context.Background()))
		to.Upload(dst, raw)
		r.must(to.Sync(context.Background()))
	}
	return &models.Place{
		Backend: r.b, Stream: s, Ops: ops,
		There: func(dst, src tensor.Tensor) { move(dst, src, s, r.stream) },
		Back:  func(dst, src tensor.Tensor) { move(dst, src, r.stream, s) },
	}
}

func (r *Runner) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *Runner) alloc(d tensor.DType, rows, cols int) tensor.Tensor {
	shape := tensor.Of(rows, cols)
	buf, err := r.b.Device().Alloc(int64(rows) * int64(cols) * int64(d.Bits()) / 8)
	r.must(err)
	r.t.Cleanup(func() { r.must(buf.Free()) })
	return tensor.Tensor{Buf: buf, DType: d, Shape: shape}
}

// Seq is a sequence in progress. Its pages are never given back.
type Seq struct {
	n     int // tokens so far
	table []int32
}

// Run is a sequence's part of a step: the tokens that come next.
type Run struct {
	Seq *Seq
	IDs []int32
}

// Step runs one batch and gives the logits of all its rows, in order.
func (r *Runner) Step(runs ...Run) [][]float32 {
	r.t.Helper()
	b := &kernels.Batch{Starts: []int32{0}}
	for _, run := range runs {
		s := run.Seq
		for _, id := range run.IDs {
			if s.n%kernels.BlockSize == 0 {
				if len(r.free) == 0 {
					r.t.Fatal("out of K/V pages")
				}
				s.table = append(s.table, r.free[0])
				r.free = r.free[1:]
			}
			page := s.table[s.n/kernels.BlockSize]
			b.Logits = append(b.Logits, int32(len(b.Tokens)))
			b.Tokens = append(b.Tokens, id)
			b.Positions = append(b.Positions, int32(s.n))
			b.Slots = append(b.Slots, page*kernels.BlockSize+int32(s.n%kernels.BlockSize))
			s.n++
		}
		b.Starts = append(b.Starts, int32(len(b.Tokens)))
		b.Contexts = append(b.Contexts, int32(s.n))
		b.BlockTables = append(b.BlockTables, s.table)
	}
	t := len(b.Tokens)
	r.ops.Begin(b)
	hidden, logits := r.hidden.Rows(0, t), r.logits.Rows(0, t)
	for i, s := range r.stages {
		s.Forward(r.ops, b, r.caches[i].Layers(), hidden, logits)
	}
	raw := make([]byte, logits.Bytes())
	r.stream.Download(raw, logits)
	r.must(r.stream.Sync(context.Background()))
	v := r.Model.Config().VocabSize
	out := make([][]float32, t)
	for i := range out {
		out[i] = make([]float32, v)
		for j := range out[i] {
			out[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(i*v+j):]))
		}
	}
	return out
}

// Prefill runs ids in chunks of the given size.
func (r *Runner) Prefill(s *Seq, ids []int32, chunk int) [][]float32 {
	r.t.Helper()
	var out [][]float32
	for len(ids) > 0 {
		n := min(chunk, len(ids))
		out = append(out, r.Step(Run{s, ids[:n]})...)
		ids = ids[n:]
	}
	return out
}

// Argmax is the index of the largest value, the first among equals.
func Argmax(v []float32) int32 {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return int32(best)
}
