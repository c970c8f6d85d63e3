package layers

import (
	"errors"
	"fmt"
	"slices"

	"infer/models"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// stage implements models.Stage.
type stage struct {
	*model
	lo          int // first layer
	ownHidden   bool
	layers      []layer
	embed, head kernels.Weight     // [VocabSize, Hidden]; one and the same when tied
	norm        vector             // [Hidden], final
	cos, sin    vector             // [MaxPositions, Dim/2]
	sent        []kernels.Resident // what was uploaded to weights, and to away.weights
	weights     arena              // norms, biases, tables
	scratch     arena
	hidden      vector // [MaxTokens, Hidden] residual stream of a stage that is the whole model
	normed      vector // [MaxTokens, Hidden]
	qkv         vector // [MaxTokens, Heads.Cols]
	attended    vector // [MaxTokens, Q × Dim]
	gateUp      vector // [MaxTokens, 2 × Intermediate]
	activated   vector // [MaxTokens, Intermediate]
	gathered    vector // [MaxLogits, Hidden]

	mlps, mixtures bool    // layers of which kinds there are
	mixture        mixture // scratch; normed is the one above unless there is a place
	// Where mixtures have their norms and scratch: the arenas above, or those of
	// the place.
	moeWeights, moeScratch *arena
	place                  *models.Place // nil: none
	placeOps               kernels.MoEOps
	away                   struct{ weights, scratch arena }
}

var (
	_ models.Stage      = (*stage)(nil)
	_ models.Verifiable = (*stage)(nil)
)

// allocScratch lays out what one step needs. Attention, MLP and head run one
// after the other and share memory.
func (s *stage) allocScratch(o models.LoadOptions) error {
	a, act, t := &s.scratch, o.Backend.ActType(), o.MaxTokens
	if s.ownHidden {
		s.hidden = a.reserve(act, tensor.Of(t, s.Hidden))
	}
	s.normed = a.reserve(act, tensor.Of(t, s.Hidden))
	start, end := a.size, a.size
	share := func(reserve func()) {
		a.size = start
		reserve()
		end = max(end, a.size)
	}
	if len(s.layers) > 0 {
		share(func() {
			s.qkv = a.reserve(act, tensor.Of(t, s.Heads.Cols()))
			s.attended = a.reserve(act, tensor.Of(t, s.Heads.Q*s.Heads.Dim))
		})
	}
	if s.mlps {
		share(func() {
			s.gateUp = a.reserve(act, tensor.Of(t, 2*s.Intermediate))
			s.activated = a.reserve(act, tensor.Of(t, s.Intermediate))
		})
	}
	switch {
	case s.place != nil:
		b := s.moeScratch
		s.mixture.x, s.mixture.normed = b.reserve(act, tensor.Of(t, s.Hidden)), b.reserve(act, tensor.Of(t, s.Hidden))
		s.mixture.reserve(b, s.model, act, t)
		if err := b.alloc(s.place.Backend.Device()); err != nil {
			return fmt.Errorf("of mixtures of experts: %w", err)
		}
	case s.mixtures:
		s.mixture.normed = s.normed
		share(func() { s.mixture.reserve(a, s.model, act, t) })
	}
	if o.Head {
		share(func() { s.gathered = a.reserve(act, tensor.Of(o.MaxLogits, s.Hidden)) })
	}
	a.size = end
	return a.alloc(o.Backend.Device())
}

// Forward implements models.Stage.
func (s *stage) Forward(ops kernels.Ops, b *kernels.Batch, kv []kernels.KVLayer, hidden, logits tensor.Tensor) {
	t := len(b.Tokens)
	rows := func(v vector) tensor.Tensor { return s.scratch.at(v).Rows(0, t) }
	x := hidden
	if s.ownHidden {
		x = rows(s.hidden)
	}
	if s.embed != nil {
		ops.Embed(x, s.embed)
	}
	h := rows(s.normed)
	marker, marks := ops.(kernels.LayerMarker)
	for i := range s.layers {
		w := &s.layers[i]
		if marks {
			marker.Layer(s.lo + i)
		}
		s.attention(ops, w, kv[i], s.window(s.lo+i), x, h, rows(s.qkv), rows(s.attended))
		switch {
		case w.router == nil:
			s.mlp(ops, w, x, h, rows(s.gateUp), rows(s.activated))
		case s.place == nil:
			s.mix(ops.(kernels.MoEOps), w, x)
		default:
			s.mixAway(w, x)
		}
	}
	if marks {
		marker.Layer(-1)
	}
	if n := len(b.Logits); s.head != nil && n > 0 {
		last := s.scratch.at(s.gathered).Rows(0, n)
		ops.GatherRows(last, x)
		h = s.scratch.at(s.normed).Rows(0, n)
		ops.RMSNorm(h, last, s.weights.at(s.norm), s.Eps)
		ops.MatMul(kernels.MatMulArgs{Dst: logits, X: h, W: s.head})
	}
}

// attention adds the attention block's output to x [T, Hidden].
func (s *stage) attention(ops kernels.Ops, w *layer, kv kernels.KVLayer, window int, x, h, qkv, out tensor.Tensor) {
	at := s.weights.at
	ops.RMSNorm(h, x, at(w.inputNorm), s.Eps)
	ops.MatMul(kernels.MatMulArgs{Dst: qkv, X: h, W: w.qkv, Bias: at(w.qkvBias)})
	ops.Rotary(kernels.RotaryArgs{
		QKV: qkv, Heads: s.Heads, QNorm: at(w.qNorm), KNorm: at(w.kNorm), Eps: s.Eps,
		Cos: at(s.cos), Sin: at(s.sin), KV: kv,
	})
	ops.Attention(kernels.AttentionArgs{Dst: out, QKV: qkv, Heads: s.Heads, KV: kv, Window: window, Scale: s.scale})
	ops.MatMul(kernels.MatMulArgs{Dst: x, X: out, W: w.o, Bias: at(w.oBias), Add: true})
}

// mlp adds the gated MLP's output to x [T, Hidden].
func (s *stage) mlp(ops kernels.Ops, w *layer, x, h, gateUp, act tensor.Tensor) {
	at := s.weights.at
	ops.RMSNorm(h, x, at(w.postNorm), s.Eps)
	ops.MatMul(kernels.MatMulArgs{Dst: gateUp, X: h, W: w.gateUp, Bias: at(w.gateUpBias)})
	ops.GatedAct(act, gateUp, s.Activation)
	ops.MatMul(kernels.MatMulArgs{Dst: x, X: act, W: w.down, Bias: at(w.downBias), Add: true})
}

// each calls f for every packed weight of the stage's device, a tied one once.
func (s *stage) each(f func(kernels.Weight)) {
	list := []kernels.Weight{s.embed}
	for i := range s.layers {
		w := &s.layers[i]
		list = append(list, w.qkv, w.o)
		if w.router == nil || s.place == nil {
			list = append(list, w.router, w.gateUp, w.down)
		}
	}
	if s.head != s.embed {
		list = append(list, s.head)
	}
	for _, w := range list {
		if w != nil {
			f(w)
		}
	}
}

// eachAway calls f for every packed weight of the place of the experts.
func (s *stage) eachAway(f func(kernels.Weight)) {
	for i := range s.layers {
		w := &s.layers[i]
		if w.router == nil || s.place == nil {
			continue
		}
		for _, w := range []kernels.Weight{w.router, w.gateUp, w.down} {
			if w != nil {
				f(w)
			}
		}
	}
}

// Resident implements models.Verifiable.
func (s *stage) Resident() []kernels.Resident {
	all := slices.Clone(s.sent)
	add := func(w kernels.Weight) {
		if v, ok := w.(kernels.VerifiableWeight); ok {
			what := fmt.Sprintf("a %d×%d %v matrix", w.Rows(), w.Cols(), w.Format())
			all = append(all, kernels.Resident{What: what, Memory: v.Memory(), Sent: v.Sent()})
		}
	}
	s.each(add)
	s.eachAway(add)
	return all
}

// Bytes implements models.Stage.
func (s *stage) Bytes() (weights, scratch int64) {
	weights = s.weights.size
	s.each(func(w kernels.Weight) { weights += w.Bytes() })
	return weights, s.scratch.size
}

// ExpertBytes implements models.Stage.
func (s *stage) ExpertBytes() (weights, scratch int64) {
	weights = s.away.weights.size
	s.eachAway(func(w kernels.Weight) { weights += w.Bytes() })
	return weights, s.away.scratch.size
}

// Close implements models.Stage. Work that uses the stage must have finished.
func (s *stage) Close() error {
	var errs []error
	s.each(func(w kernels.Weight) { errs = append(errs, w.Free()) })
	s.eachAway(func(w kernels.Weight) { errs = append(errs, w.Free()) })
	s.embed, s.head, s.layers = nil, nil, nil
	errs = append(errs, s.weights.free(), s.scratch.free(), s.away.weights.free(), s.away.scratch.free())
	return errors.Join(errs...)
}
