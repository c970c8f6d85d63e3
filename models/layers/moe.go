package layers

import (
	"fmt"

	"infer/models"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// MoE says what a layer with a mixture of experts has in the place of its MLP.
// How many experts there are, how wide, and how many a token takes is in
// models.Config.
type MoE struct {
	Block          string // its name in a layer: "mlp"
	Gate, Up, Down string // of an expert's matrices: "gate_proj"
	Normalize      bool   // the weights of a token's experts add up to 1
	Dense          []bool // layers that have an ordinary MLP; nil: none
}

// maxAllExperts bounds the experts of all layers: they are listed before they
// are compared with the checkpoint.
const maxAllExperts = 1 << 17

// ReadExperts reads how many experts there are and how many a token takes.
// inter is the key of an expert's width.
func (s *Spec) ReadExperts(c *models.ConfigFile, m MoE, experts, chosen int, inter string, width int) {
	key := "num_experts"
	if !c.Has(key) { // the same thing, by its other name
		key = "num_local_experts"
	}
	s.Experts = c.Int(key, experts, 1, kernels.MaxExperts)
	s.ExpertsPerToken = c.Int("num_experts_per_tok", chosen, 1, kernels.MaxChosen)
	if s.ExpertsPerToken > s.Experts {
		c.Fail("num_experts_per_tok", "is %d, but %s is %d", s.ExpertsPerToken, key, s.Experts)
	}
	if n := s.Experts * s.Layers; n > maxAllExperts {
		c.Fail(key, "is %d, which makes %d in %d layers, more than %d", s.Experts, n, s.Layers, maxAllExperts)
	}
	s.ExpertIntermediate = c.Int(inter, width, 1, maxWidth)
	s.MoE = &m
}

// moeNames are the tensors of a layer's mixture, below "model.layers.N.".
type moeNames struct {
	block          string
	gate, up, down string // of an expert
	stacked        bool   // all experts of a layer in two tensors
}

// stackedGateUp is how newer checkpoints, which hold the experts of a layer in
// two tensors, call the first: gate above up, for each expert.
const (
	stackedGateUp = "mlp.experts.gate_up_proj" // [E, 2 × I, H]
	stackedDown   = "mlp.experts.down_proj"    // [E, H, I]
)

// names looks which of the two layouts the checkpoint has.
func (m *MoE) names(ck *loader.Checkpoint) moeNames {
	n := moeNames{block: m.Block, gate: m.Gate, up: m.Up, down: m.Down}
	layer := 0
	for layer < len(m.Dense)-1 && m.Dense[layer] {
		layer++
	}
	if _, ok := ck.Tensor(layerName(layer, stackedGateUp)); ok {
		n.block, n.stacked = "mlp", true
	}
	return n
}

func (n moeNames) router() string { return n.block + ".gate.weight" }

func (n moeNames) expert(e int, matrix string) string {
	return fmt.Sprintf("%s.experts.%d.%s.weight", n.block, e, matrix)
}

// sparse tells whether a layer is a mixture of experts.
func (m *model) sparse(layer int) bool {
	return m.MoE != nil && (m.MoE.Dense == nil || !m.MoE.Dense[layer])
}

// moeOperands of a layer, as operands gives them.
func (m *model) moeOperands() []operand {
	n, h, i := m.experts, m.Hidden, m.ExpertIntermediate
	list := []operand{{n.router(), []int{m.Experts, h}, true}}
	if n.stacked {
		return append(list,
			operand{stackedGateUp, []int{m.Experts, 2 * i, h}, true},
			operand{stackedDown, []int{m.Experts, h, i}, true})
	}
	for e := range m.Experts {
		list = append(list,
			operand{n.expert(e, n.gate), []int{i, h}, true},
			operand{n.expert(e, n.up), []int{i, h}, true},
			operand{n.expert(e, n.down), []int{h, i}, true})
	}
	return list
}

// spansOf lists what a layer's stack of gates and ups, and its stack of downs,
// is made of, with zeros behind each expert up to the next one's rows.
func (l *loading) spansOf(layer int) (gateUp, down []span, err error) {
	n := l.experts
	get := func(name string) (s span) {
		if err == nil {
			var t *loader.Tensor
			if t, err = l.tensor(layerName(layer, name)); err == nil {
				s = whole(t)
			}
		}
		return s
	}
	part := func(s span, e int) span {
		rows := s.rows / l.Experts
		return span{t: s.t, from: e * rows, rows: rows}
	}
	pad := func(list []span, rows int) []span {
		if more := kernels.ExpertRows(rows) - rows; more > 0 {
			list = append(list, span{rows: more})
		}
		return list
	}
	var allGateUp, allDown span
	if n.stacked {
		allGateUp, allDown = get(stackedGateUp), get(stackedDown)
	}
	for e := range l.Experts {
		if n.stacked {
			gateUp, down = append(gateUp, part(allGateUp, e)), append(down, part(allDown, e))
		} else {
			gateUp, down = append(gateUp, get(n.expert(e, n.gate)), get(n.expert(e, n.up))), append(down, get(n.expert(e, n.down)))
		}
		gateUp, down = pad(gateUp, 2*l.ExpertIntermediate), pad(down, l.Hidden)
	}
	return gateUp, down, err
}

// mixture is the scratch of a stage's mixtures of experts.
type mixture struct {
	x                  vector // [MaxTokens, Hidden], of a models.Place: the residual stream
	normed             vector // [MaxTokens, Hidden]
	logits             vector // [MaxTokens, Experts] F32
	ids, chosen        vector // [MaxTokens, ExpertsPerToken]
	hidden, gated, out vector // see kernels.ExpertsScratch
	order              vector
}

// reserve lays the scratch out, x and normed excepted.
func (x *mixture) reserve(a *arena, m *model, act tensor.DType, t int) {
	k, i := m.ExpertsPerToken, m.ExpertIntermediate
	x.logits = a.reserve(tensor.F32, tensor.Of(t, m.Experts))
	x.ids, x.chosen = a.reserve(tensor.I32, tensor.Of(t, k)), a.reserve(tensor.F32, tensor.Of(t, k))
	x.hidden, x.gated = a.reserve(act, tensor.Of(t*k, 2*i)), a.reserve(act, tensor.Of(t*k, i))
	x.out = a.reserve(tensor.F32, tensor.Of(t*k, m.Hidden))
	x.order = a.reserve(tensor.I32, tensor.Of(kernels.ExpertsOrder(t, k, m.Experts)))
}

// mix adds a mixture's output to x [T, Hidden], which lies where ops compute.
func (s *stage) mix(ops kernels.MoEOps, w *layer, x tensor.Tensor) {
	at, m := s.moeScratch.at, &s.mixture
	t, k := x.Shape.Dim(0), s.ExpertsPerToken
	h, logits := at(m.normed).Rows(0, t), at(m.logits).Rows(0, t)
	ids, chosen := at(m.ids).Rows(0, t), at(m.chosen).Rows(0, t)
	ops.RMSNorm(h, x, s.moeWeights.at(w.postNorm), s.Eps)
	ops.MatMul(kernels.MatMulArgs{Dst: logits, X: h, W: w.router})
	ops.Route(kernels.RouteArgs{IDs: ids, Weights: chosen, Logits: logits, Normalize: s.MoE.Normalize})
	ops.Experts(kernels.ExpertsArgs{
		Dst: x, X: h, IDs: ids, Weights: chosen, GateUp: w.gateUp, Down: w.down,
		Experts: s.Experts, Inter: s.ExpertIntermediate, Act: s.Activation,
		Scratch: kernels.ExpertsScratch{
			Hidden: at(m.hidden).Rows(0, t*k), Gated: at(m.gated).Rows(0, t*k), Out: at(m.out).Rows(0, t*k), Order: at(m.order),
		},
	})
}

// mixAway is mix on the place of the experts: x goes there and comes back.
func (s *stage) mixAway(w *layer, x tensor.Tensor) {
	y := s.moeScratch.at(s.mixture.x).Rows(0, x.Shape.Dim(0))
	s.place.There(y, x)
	s.mix(s.placeOps, w, y)
	s.place.Back(x, y)
}
