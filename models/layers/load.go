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
	o     models.LoadOptions
	s     *stage
	small []byte // the arena's vectors, before they are uploaded
}

func (l *loading) run() error {
	l.s.layers = make([]layer, l.o.Hi-l.o.Lo)
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
	return l.o.Stream.Sync(l.ctx)
}

// readVectors reads norms and biases, as F32, and lays out the weight arena.
func (l *loading) readVectors() (err error) {
	read := func(parts ...string) (v vector) {
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
		v = l.s.weights.reserve(tensor.F32, tensor.Of(len(vals)))
		l.small = append(l.small, make([]byte, l.s.weights.size-int64(len(l.small)))...)
		putF32(l.small[v.offset:], vals)
		return v
	}
	for i := range l.s.layers {
		n, w := l.o.Lo+i, &l.s.layers[i]
		name := func(s string) string { return layerName(n, s) }
		w.inputNorm = read(name("input_layernorm.weight"))
		w.postNorm = read(name("post_attention_layernorm.weight"))
		if l.QKNorm {
			w.qNorm, w.kNorm = read(name("self_attn.q_norm.weight")), read(name("self_attn.k_norm.weight"))
		}
		if l.QKVBias {
			w.qkvBias = read(name("self_attn.q_proj.bias"), name("self_attn.k_proj.bias"), name("self_attn.v_proj.bias"))
		}
		if l.OBias {
			w.oBias = read(name("self_attn.o_proj.bias"))
		}
		if l.MLPBias {
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
	if n := len(l.small); n > 0 {
		l.o.Stream.Upload(tensor.Tensor{Buf: a.buf, DType: tensor.U8, Shape: tensor.Of(n)}, l.small)
		if err := l.o.Stream.Sync(l.ctx); err != nil {
			return fmt.Errorf("upload norms and biases: %w", err)
		}
		l.small = nil
	}
	if len(l.s.layers) == 0 {
		return nil
	}
	step := max(1, (1<<20)/(4*half))
	vals := make([]float32, 2*min(step, l.o.MaxPositions)*half)
	raw := make([]byte, 4*len(vals))
	for lo := 0; lo < l.o.MaxPositions; lo += step {
		hi := min(lo+step, l.o.MaxPositions)
		n := (hi - lo) * half
		l.Rotary.fill(vals[:n], vals[n:2*n], lo)
		putF32(raw, vals[:2*n])
		l.o.Stream.Upload(a.at(l.s.cos).Rows(lo, hi), raw[:4*n])
		l.o.Stream.Upload(a.at(l.s.sin).Rows(lo, hi), raw[4*n:8*n])
		if err := l.o.Stream.Sync(l.ctx); err != nil {
			return fmt.Errorf("upload rotary tables: %w", err)
		}
	}
	return nil
}

// job is a weight to be made of tensors, one below the other.
type job struct {
	to    *kernels.Weight
	names []string
}

// jobs lists the stage's matrices in the order of the layers.
func (l *loading) jobs() []job {
	var jobs []job
	if l.o.Embed {
		jobs = append(jobs, job{&l.s.embed, []string{l.embed}})
	}
	for i := range l.s.layers {
		w := &l.s.layers[i]
		add := func(to *kernels.Weight, names ...string) {
			for j := range names {
				names[j] = layerName(l.o.Lo+i, names[j]+".weight")
			}
			jobs = append(jobs, job{to, names})
		}
		add(&w.qkv, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
		add(&w.o, "self_attn.o_proj")
		add(&w.gateUp, "mlp.gate_proj", "mlp.up_proj")
		add(&w.down, "mlp.down_proj")
	}
	if l.o.Head && !(l.o.Embed && l.head == l.embed) {
		jobs = append(jobs, job{&l.s.head, []string{l.head}})
	}
	return jobs
}

func (l *loading) packAll() error {
	for _, j := range l.jobs() {
		parts := make([]*loader.Tensor, len(j.names))
		for i, name := range j.names {
			var err error
			if parts[i], err = l.tensor(name); err != nil {
				return err
			}
		}
		m := newMatrix(l.ctx, l.progress, parts...)
		w, err := l.o.Backend.Pack(l.o.Stream, m, l.o.Format)
		if errors.Is(err, device.ErrNotSupported) {
			return fmt.Errorf("%v cannot hold weights as %v (stored as %v): %w", l.o.Backend.Device().Info().ID, l.o.Format, m.dtype, err)
		}
		if err != nil {
			return fmt.Errorf("pack %.120q (%d × %d %v as %v): %w", j.names[0], m.rows, m.cols, m.dtype, l.o.Format, err)
		}
		*j.to = w
	}
	if l.o.Head && l.s.head == nil {
		l.s.head = l.s.embed // tied
	}
	return nil
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
