package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// fakeModel costs nothing and forgets nothing: its hidden state is a hash of
// the whole context, which it reads from its pages through the block tables.
// A wrong page, slot, position or batch row changes every later token.
type fakeModel struct {
	layers, vocab int
	nan           int  // token id that makes the last logit NaN; 0: none
	loops         bool // a token's likeliest successor depends on it alone, so that texts repeat
}

const fakeContext = 4096

func (m *fakeModel) Config() models.Config {
	return models.Config{
		Architecture: "Fake", VocabSize: m.vocab, Hidden: 2, Intermediate: 1, Layers: m.layers,
		Heads: kernels.Heads{Q: 1, KV: 1, Dim: 2}, MaxPositions: fakeContext,
	}
}

func (m *fakeModel) Tensors() []models.TensorSpec { return nil }

func (m *fakeModel) Load(_ context.Context, o models.LoadOptions) (models.Stage, error) {
	return &fakeStage{fakeModel: m, LoadOptions: o, pages: map[int32]uint64{}}, nil
}

type fakeStage struct {
	*fakeModel
	models.LoadOptions
	pages map[int32]uint64 // by slot; the hash of the context up to there
	h     []uint64
	raw   []byte
	keep  []byte // logits until the stream is synchronised
}

func mix(a, b uint64) uint64 {
	a ^= b * 0x9E3779B97F4A7C15
	a = (a ^ a>>30) * 0xBF58476D1CE4E5B9
	a = (a ^ a>>27) * 0x94D049BB133111EB
	return a ^ a>>31
}

// logit j of a hidden state behind token id, in [−4, 4); a loop's successor is above.
func (m *fakeModel) logit(h uint64, id int32, j int) float32 {
	x := float32(mix(h, uint64(j)+77)>>40)/(1<<21) - 4
	if m.loops && j == (int(id)*7+3)%m.vocab {
		x += 9
	}
	return x
}

func (s *fakeStage) Forward(ops kernels.Ops, b *kernels.Batch, _ []kernels.KVLayer, hidden, logits tensor.Tensor) {
	if a, ok := ops.(interface{ arrived() *kernels.Batch }); ok {
		b = a.arrived()
	}
	n := len(b.Tokens)
	s.h = slices.Grow(s.h[:0], n)[:n]
	h := s.h
	if !s.Embed {
		s.raw = slices.Grow(s.raw[:0], 8*n)[:8*n]
		s.Stream.Download(s.raw, hidden)
		if err := s.Stream.Sync(context.Background()); err != nil {
			return // sticky: the step fails
		}
	}
	for t := range n {
		if s.Embed {
			h[t] = mix(1, uint64(b.Tokens[t]))
		} else {
			h[t] = binary.LittleEndian.Uint64(s.raw[8*t:])
		}
	}
	for layer := s.Lo; layer < s.Hi; layer++ {
		for i, table := range b.BlockTables {
			for t := b.Starts[i]; t < b.Starts[i+1]; t++ {
				p, before := b.Positions[t], uint64(layer)
				if p > 0 {
					q := p - 1
					before = s.pages[s.slot(layer, table[q/kernels.BlockSize]*kernels.BlockSize+q%kernels.BlockSize)]
				}
				h[t] = mix(mix(h[t], before), uint64(p))
				s.pages[s.slot(layer, b.Slots[t])] = h[t]
			}
		}
	}
	if !s.Head {
		s.raw = s.raw[:0]
		for _, v := range h {
			s.raw = binary.LittleEndian.AppendUint64(s.raw, v)
		}
		s.Stream.Upload(hidden, s.raw)
		return
	}
	if len(b.Logits) == 0 {
		return
	}
	s.keep = s.keep[:0]
	for _, row := range b.Logits {
		for j := range s.vocab {
			x := s.logit(h[row], b.Tokens[row], j)
			if s.nan > 0 && int(b.Tokens[row]) == s.nan && j == s.vocab-1 {
				x = float32(math.NaN())
			}
			s.keep = binary.LittleEndian.AppendUint32(s.keep, math.Float32bits(x))
		}
	}
	s.Stream.Upload(logits, s.keep)
}

func (s *fakeStage) slot(layer int, slot int32) int32 { return slot*int32(s.layers) + int32(layer) }

func (s *fakeStage) Bytes() (weights, scratch int64)       { return 0, 0 }
func (s *fakeStage) ExpertBytes() (weights, scratch int64) { return 0, 0 }
func (s *fakeStage) Close() error                          { return nil }

// continuation is what the fake model says greedily behind a prompt, computed
// without pages; sampled with pick when given.
func (m *fakeModel) continuation(prompt []int32, n int, pick func(row []float32, position int) int32) []int32 {
	state := make([]uint64, m.layers)
	for l := range state {
		state[l] = uint64(l)
	}
	var out []int32
	row := make([]float32, m.vocab)
	for p := 0; len(out) < n; p++ {
		id := int32(0)
		if p < len(prompt) {
			id = prompt[p]
		} else {
			id = out[p-len(prompt)]
		}
		h := mix(1, uint64(id))
		for l := range state {
			h = mix(mix(h, state[l]), uint64(p))
			state[l] = h
		}
		if p < len(prompt)-1 {
			continue
		}
		for j := range row {
			row[j] = m.logit(h, id, j)
		}
		if pick != nil {
			out = append(out, pick(row, p+1))
			continue
		}
		_, at, _ := maximum(row)
		out = append(out, int32(at))
	}
	return out
}

// wrapped is a backend under another name, whose streams a test may harm.
type wrapped struct {
	kernels.Backend
	id     device.ID
	stream func(device.Stream) device.Stream
	bound  atomic.Int64 // calls of BindThread
}

func (w *wrapped) BindThread() { w.bound.Add(1) }

func (w *wrapped) Device() device.Device { return wrappedDevice{w.Backend.Device(), w} }

// NewOps gives the reference's, with an Argmax that does not allocate.
func (w *wrapped) NewOps(s device.Stream) (kernels.Ops, error) {
	ops, err := w.Backend.NewOps(s)
	return &quietOps{Ops: ops, s: s}, err
}

type quietOps struct {
	kernels.Ops
	s            device.Stream
	buf, in, out []byte
}

func (o *quietOps) Argmax(dst, logits tensor.Tensor) {
	o.buf = slices.Grow(o.buf[:0], int(logits.Bytes()))[:logits.Bytes()]
	o.in = o.buf
	o.s.Download(o.in, logits)
	o.out = o.out[:0]
	for width := logits.Shape.Dim(1) * 4; len(o.in) > 0; o.in = o.in[width:] {
		best, at := float32(math.Inf(-1)), -1
		for j := 0; j < width; j += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(o.in[j:]))
			if x != x || math.IsInf(float64(x), 1) {
				at = -1
				break
			}
			if x > best {
				best, at = x, j/4
			}
		}
		o.out = binary.LittleEndian.AppendUint32(o.out, uint32(at))
	}
	o.s.Upload(dst, o.out)
}

type wrappedDevice struct {
	device.Device
	w *wrapped
}

func (d wrappedDevice) Info() device.Info {
	i := d.Device.Info()
	i.ID = d.w.id
	return i
}

func (d wrappedDevice) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	if err == nil && d.w.stream != nil {
		s = d.w.stream(s)
	}
	return s, err
}

// fakeSetup says how a test wants an engine over the fake model.
type fakeSetup struct {
	blocks, context, seqs, tokens, queue int
	stages                               int // of two layers each; 0: one
	stream                               func(stage int, s device.Stream) device.Stream
	runner                               RunnerConfig
	model                                fakeModel
	c                                    Config
	still                                bool // the loop does not run
}

func openFake(t testing.TB, s fakeSetup) (*Engine, *fakeModel) {
	t.Helper()
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&s.blocks, 256)
	def(&s.context, 512)
	def(&s.seqs, 32)
	def(&s.tokens, max(64, s.seqs))
	def(&s.queue, 1000)
	def(&s.stages, 1)
	def(&s.model.vocab, 50)
	s.model.layers = 2 * s.stages
	m := &s.model
	plan := devicemap.Plan{Blocks: s.blocks, MaxContext: s.context, MaxSeqs: s.seqs, MaxTokens: s.tokens, MaxLogits: s.seqs}
	var backends []kernels.Backend
	for i := range s.stages {
		id := device.ID{Kind: device.CPU, Index: i}
		w := &wrapped{Backend: ref.Open(), id: id}
		if s.stream != nil {
			w.stream = func(x device.Stream) device.Stream { return s.stream(i, x) }
		}
		backends = append(backends, w)
		plan.Stages = append(plan.Stages, devicemap.Stage{Device: id, Lo: 2 * i, Hi: 2*i + 2, Embed: i == 0, Head: i == s.stages-1})
	}
	s.runner.Model, s.runner.Plan, s.runner.Backends = m, plan, backends
	r, err := Load(t.Context(), s.runner)
	if err != nil {
		t.Fatal(err)
	}
	s.c.Runner, s.c.MaxQueue = r, s.queue
	make := New
	if s.still {
		make = prepare
	}
	e, err := make(s.c)
	if err != nil {
		t.Fatal(err)
	}
	if s.still {
		t.Cleanup(e.workers.close)
		return e, m
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e, m
}

func fakePrompt(n, seed int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(mix(uint64(seed), uint64(i)) % 50)
	}
	return p
}

func TestFakeModelMeansSomething(t *testing.T) {
	m := &fakeModel{layers: 2, vocab: 50}
	a := m.continuation(fakePrompt(20, 1), 30, nil)
	if b := m.continuation(fakePrompt(20, 2), 30, nil); slices.Equal(a, b) {
		t.Fatal("another prompt, the same answer")
	}
	if fmt.Sprint(a) == fmt.Sprint(make([]int32, 30)) {
		t.Fatal("always the same token")
	}
}
