package layers

import (
	"context"
	"errors"
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Load implements models.Model. Host memory beyond the device's own: the norms
// and biases of the stage, a piece of the rotary tables, and what the backend
// needs to pack one matrix.
func (m *model) Load(ctx context.Context, o models.LoadOptions) (models.Stage, error) {
	if err := m.checkOptions(o); err != nil {
		return nil, fmt.Errorf("load %s: %w", m.Architecture, err)
	}
	l := &loading{ctx: ctx, model: m, o: o, s: &stage{model: m, lo: o.Lo, ownHidden: o.Embed && o.Head}}
	if err := l.run(); err != nil {
		return nil, errors.Join(err, l.s.Close())
	}
	return l.s, nil
}

// loading is one Load in progress.
type loading struct {
	ctx context.Context
	*model
	o models.LoadOptions
	s *stage
	// The arenas' vectors, before they are uploaded: of the stage, and of the
	// place of its experts.
	small, away []byte
	// Matrices to pack in one go, for backends that can.
	jobs []packJob
}

// packJob is a matrix that becomes a weight.
type packJob struct {
	to *kernels.Weight
	b  kernels.Backend
	s  device.Stream
	f  kernels.Format
	m  *matrix
}

func (l *loading) run() error {
	l.s.layers = make([]layer, l.o.Hi-l.o.Lo)
	if err := l.findMixtures(); err != nil {
		return err
	}
	if err := l.readVectors(); err != nil {
		return err
	}
	if err := l.uploadVectors(); err != nil {
		return err
	}
	if err := l.packAll(); err != nil {
		return err
	}
	if err := l.s.allocScratch(l.o); err != nil {
		return fmt.Errorf("scratch memory for %d tokens a step: %w", l.o.MaxTokens, err)
	}
	if p := l.s.place; p != nil {
		if err := p.Stream.Sync(l.ctx); err != nil {
			return err
		}
	}
	return l.o.Stream.Sync(l.ctx)
}

// findMixtures settles where the mixtures of experts are.
func (l *loading) findMixtures() error {
	s := l.s
	s.moeWeights, s.moeScratch = &s.weights, &s.scratch
	for i := l.o.Lo; i < l.o.Hi; i++ {
		s.mixtures = s.mixtures || l.sparse(i)
		s.mlps = s.mlps || !l.sparse(i)
	}
	p := l.o.Experts
	if p == nil || !s.mixtures {
		return nil
	}
	var ok bool
	if s.placeOps, ok = p.Ops.(kernels.MoEOps); !ok {
		return fmt.Errorf("mixtures of experts on %v: %w", p.Backend.Device().Info().ID, device.ErrNotSupported)
	}
	s.place, s.moeWeights, s.moeScratch = p, &s.away.weights, &s.away.scratch
	return nil
}

// readVectors reads norms and biases, as F32, and lays out the weight arena.
func (l *loading) readVectors() (err error) {
	readTo := func(a *arena, small *[]byte, parts ...string) (v vector) {
		if err != nil {
			return v
		}
		var vals []float32
		for _, name := range parts {
			t, e := l.tensor(name)
			if e == nil {
				vals, e = readF32(vals, t)
			}
			if err = e; err != nil {
				return v
			}
			l.progress(t.Bytes)
		}
		v = a.reserve(tensor.F32, tensor.Of(len(vals)))
		*small = append(*small, make([]byte, a.size-int64(len(*small)))...)
		putF32((*small)[v.offset:], vals)
		return v
	}
	read := func(parts ...string) vector { return readTo(&l.s.weights, &l.small, parts...) }
	for i := range l.s.layers {
		n, w := l.o.Lo+i, &l.s.layers[i]
		name := func(s string) string { return layerName(n, s) }
		w.inputNorm = read(name("input_layernorm.weight"))
		if l.sparse(n) && l.s.place != nil {
			w.postNorm = readTo(l.s.moeWeights, &l.away, name("post_attention_layernorm.weight"))
		} else {
			w.postNorm = read(name("post_attention_layernorm.weight"))
		}
		if l.QKNorm {
			w.qNorm, w.kNorm = read(name("self_attn.q_norm.weight")), read(name("self_attn.k_norm.weight"))
		}
		if l.QKVBias {
			w.qkvBias = read(name("self_attn.q_proj.bias"), name("self_attn.k_proj.bias"), name("self_attn.v_proj.bias"))
		}
		if l.OBias {
			w.oBias = read(name("self_attn.o_proj.bias"))
		}
		if l.MLPBias && !l.sparse(n) {
			w.gateUpBias = read(name("mlp.gate_proj.bias"), name("mlp.up_proj.bias"))
			w.downBias = read(name("mlp.down_proj.bias"))
		}
	}
	if l.o.Head {
		l.s.norm = read(normName)
	}
	return err
}

// uploadVectors makes the weight arena on the device and fills it: vectors,
// then rotary tables.
func (l *loading) uploadVectors() error {
	a, half := &l.s.weights, l.Rotary.Dim/2
	if len(l.s.layers) > 0 {
		l.s.cos = a.reserve(tensor.F32, tensor.Of(l.o.MaxPositions, half))
		l.s.sin = a.reserve(tensor.F32, tensor.Of(l.o.MaxPositions, half))
	}
	if err := a.alloc(l.o.Backend.Device()); err != nil {
		return fmt.Errorf("norms, biases and rotary tables of %d positions: %w", l.o.MaxPositions, err)
	}
	if err := l.upload(l.o.Stream, a, l.small); err != nil {
		return err
	}
	l.small = nil
	if p := l.s.place; p != nil {
		if err := l.s.moeWeights.alloc(p.Backend.Device()); err != nil {
			return fmt.Errorf("norms of mixtures of experts: %w", err)
		}
		if err := l.upload(p.Stream, l.s.moeWeights, l.away); err != nil {
			return err
		}
		l.away = nil
	}
	if len(l.s.layers) == 0 {
		return nil
	}
	step := max(1, (1<<20)/(4*half))
	vals := make([]float32, 2*min(step, l.o.MaxPositions)*half)
	raw := make([]byte, 4*len(vals))
	cos, sin := a.at(l.s.cos), a.at(l.s.sin)
	sentCos, sentSin := kernels.NewDigest(cos.Bytes()), kernels.NewDigest(sin.Bytes())
	for lo := 0; lo < l.o.MaxPositions; lo += step {
		hi := min(lo+step, l.o.MaxPositions)
		n := (hi - lo) * half
		l.Rotary.fill(vals[:n], vals[n:2*n], lo)
		putF32(raw, vals[:2*n])
		sentCos.Add(raw[:4*n], int64(4*lo*half))
		sentSin.Add(raw[4*n:8*n], int64(4*lo*half))
		l.o.Stream.Upload(cos.Rows(lo, hi), raw[:4*n])
		l.o.Stream.Upload(sin.Rows(lo, hi), raw[4*n:8*n])
		if err := l.o.Stream.Sync(l.ctx); err != nil {
			return fmt.Errorf("upload rotary tables: %w", err)
		}
	}
	l.s.sent = append(l.s.sent,
		kernels.Resident{What: "the rotary tables", Memory: cos, Sent: sentCos},
		kernels.Resident{What: "the rotary tables", Memory: sin, Sent: sentSin})
	return nil
}

// upload fills the beginning of an arena with vectors.
func (l *loading) upload(s device.Stream, a *arena, small []byte) error {
	if len(small) == 0 {
		return nil
	}
	s.Upload(tensor.Tensor{Buf: a.buf, DType: tensor.U8, Shape: tensor.Of(len(small))}, small)
	if err := s.Sync(l.ctx); err != nil {
		return fmt.Errorf("upload norms and biases: %w", err)
	}
	l.s.sent = append(l.s.sent, kernels.Resident{
		What:   "norms and biases",
		Memory: tensor.Tensor{Buf: a.buf, DType: tensor.U8, Shape: tensor.Of(len(small))}, Sent: kernels.DigestOf(small),
	})
	return nil
}

// packAll packs the stage's matrices in the order of the layers.
func (l *loading) packAll() error {
	if l.o.Embed {
		if err := l.pack(&l.s.embed, l.embed); err != nil {
			return err
		}
	}
	for i := range l.s.layers {
		n, w := l.o.Lo+i, &l.s.layers[i]
		name := func(s string) string { return layerName(n, s+".weight") }
		err := l.pack(&w.qkv, name("self_attn.q_proj"), name("self_attn.k_proj"), name("self_attn.v_proj"))
		if err == nil {
			err = l.pack(&w.o, name("self_attn.o_proj"))
		}
		switch {
		case err != nil:
		case l.sparse(n):
			err = l.packMixture(w, n)
		default:
			if err = l.pack(&w.gateUp, name("mlp.gate_proj"), name("mlp.up_proj")); err == nil {
				err = l.pack(&w.down, name("mlp.down_proj"))
			}
		}
		if err != nil {
			return err
		}
	}
	tied := l.head == l.embed && l.o.Embed
	if l.o.Head && !tied {
		if err := l.pack(&l.s.head, l.head); err != nil {
			return err
		}
	}
	if err := l.packJobs(); err != nil {
		return err
	}
	if l.o.Head && tied {
		l.s.head = l.s.embed
	}
	return nil
}

// pack makes one weight of tensors, one below the other.
func (l *loading) pack(to *kernels.Weight, names ...string) error {
	spans := make([]span, len(names))
	for i, name := range names {
		t, err := l.tensor(name)
		if err != nil {
			return err
		}
		spans[i] = whole(t)
	}
	f := l.o.Format
	if f == kernels.Q4 && (names[0] == l.embed || names[0] == l.head) {
		f = kernels.Q8 // 4 bits in embedding or head cost more than in all layers
	}
	return l.packSpans(to, l.o.Backend, l.o.Stream, f, spans)
}

// packMixture packs a layer's router and experts where they belong.
func (l *loading) packMixture(w *layer, n int) error {
	b, s := l.o.Backend, l.o.Stream
	if p := l.s.place; p != nil {
		b, s = p.Backend, p.Stream
	}
	t, err := l.tensor(layerName(n, l.experts.router()))
	if err != nil {
		return err
	}
	// The router is small, and a choice of experts is easily another one: it
	// keeps the precision that it is stored in.
	if err := l.packSpans(&w.router, b, s, kernels.AsStored, []span{whole(t)}); err != nil {
		return err
	}
	gateUp, down, err := l.spansOf(n)
	if err != nil {
		return err
	}
	if err := l.packSpans(&w.gateUp, b, s, l.o.Format, gateUp); err != nil {
		return err
	}
	return l.packSpans(&w.down, b, s, l.o.Format, down)
}

// packSpans packs a matrix, or leaves it to packJobs.
func (l *loading) packSpans(to *kernels.Weight, b kernels.Backend, s device.Stream, f kernels.Format, spans []span) error {
	j := packJob{to: to, b: b, s: s, f: f, m: newMatrix(l.ctx, l.progress, spans...)}
	if _, ok := b.(kernels.BatchPacker); ok {
		l.jobs = append(l.jobs, j)
		return nil
	}
	w, err := b.Pack(s, j.m, f)
	if err != nil {
		return j.failed(err)
	}
	*to = w
	return nil
}

// packJobs packs what was left, all of a backend's in one go.
func (l *loading) packJobs() error {
	for len(l.jobs) > 0 {
		b, s := l.jobs[0].b, l.jobs[0].s
		var now, later []packJob
		var list []kernels.PackJob
		for _, j := range l.jobs {
			if j.b != b || j.s != s {
				later = append(later, j)
				continue
			}
			now, list = append(now, j), append(list, kernels.PackJob{Matrix: j.m, Format: j.f})
		}
		all, failed, err := b.(kernels.BatchPacker).PackAll(s, list)
		if err != nil {
			return now[failed].failed(err)
		}
		for i, w := range all {
			*now[i].to = w
		}
		l.jobs = later
	}
	return nil
}

// failed says which matrix an error is of.
func (j *packJob) failed(err error) error {
	if errors.Is(err, device.ErrNotSupported) {
		return fmt.Errorf("%v cannot hold weights as %v (stored as %v): %w", j.b.Device().Info().ID, j.f, j.m.dtype, err)
	}
	return fmt.Errorf("pack %.120q (%d × %d %v as %v): %w", j.m.spans[0].t.Name, j.m.rows, j.m.cols, j.m.dtype, j.f, err)
}

func (l *loading) tensor(name string) (*loader.Tensor, error) {
	if err := context.Cause(l.ctx); err != nil {
		return nil, fmt.Errorf("load tensor %.120q: %w", name, err)
	}
	t, ok := l.o.Checkpoint.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("%s: tensor %.120q is missing", l.o.Checkpoint.Name, name)
	}
	return t, nil
}

func (l *loading) progress(bytes int64) {
	if l.o.Progress != nil {
		l.o.Progress(bytes)
	}
}
