package layers

import (
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/kernels"
)

// model implements models.Model for every Spec.
type model struct {
	Spec
	embed, head string   // tensor names
	experts     moeNames // of a model with MoE
	scale       float32
}

// Config implements models.Model.
func (m *model) Config() models.Config { return m.Spec.Config }

// operand is one tensor of a layer: its name after "model.layers.N." and its
// shape.
type operand struct {
	name   string
	shape  []int
	expert bool
}

// operands of one layer, in the order they are used.
func (m *model) operands(sparse bool) []operand {
	h, q, kv := m.Hidden, m.Heads.Q*m.Heads.Dim, m.Heads.KV*m.Heads.Dim
	var ops []operand
	linear := func(name string, rows, cols int, bias bool) {
		ops = append(ops, operand{name + ".weight", []int{rows, cols}, false})
		if bias {
			ops = append(ops, operand{name + ".bias", []int{rows}, false})
		}
	}
	norm := func(name string, n int) { ops = append(ops, operand{name + ".weight", []int{n}, false}) }
	norm("input_layernorm", h)
	linear("self_attn.q_proj", q, h, m.QKVBias)
	linear("self_attn.k_proj", kv, h, m.QKVBias)
	linear("self_attn.v_proj", kv, h, m.QKVBias)
	if m.QKNorm {
		norm("self_attn.q_norm", m.Heads.Dim)
		norm("self_attn.k_norm", m.Heads.Dim)
	}
	linear("self_attn.o_proj", h, q, m.OBias)
	norm("post_attention_layernorm", h)
	if sparse {
		ops[len(ops)-1].expert = true
		return append(ops, m.moeOperands()...)
	}
	linear("mlp.gate_proj", m.Intermediate, h, m.MLPBias)
	linear("mlp.up_proj", m.Intermediate, h, m.MLPBias)
	linear("mlp.down_proj", h, m.Intermediate, m.MLPBias)
	return ops
}

// Tensors implements models.Model.
func (m *model) Tensors() []models.TensorSpec {
	dense, sparse := m.operands(false), []operand(nil)
	if m.MoE != nil {
		sparse = m.operands(true)
	}
	list := make([]models.TensorSpec, 0, max(len(dense), len(sparse))*m.Layers+3)
	list = append(list, models.TensorSpec{Name: m.embed, Shape: []int{m.VocabSize, m.Hidden}, Layer: models.InEmbedding})
	for l := range m.Layers {
		ops := dense
		if m.sparse(l) {
			ops = sparse
		}
		for _, o := range ops {
			list = append(list, models.TensorSpec{Name: layerName(l, o.name), Shape: o.shape, Layer: l, Expert: o.expert})
		}
	}
	list = append(list, models.TensorSpec{Name: normName, Shape: []int{m.Hidden}, Layer: models.InHead})
	if m.head != m.embed {
		list = append(list, models.TensorSpec{Name: m.head, Shape: []int{m.VocabSize, m.Hidden}, Layer: models.InHead})
	}
	return list
}

func layerName(layer int, name string) string { return fmt.Sprintf("model.layers.%d.%s", layer, name) }

// window of a layer, 0 for none.
func (m *model) window(layer int) int {
	if m.Windows == nil {
		return 0
	}
	return m.Windows[layer]
}

// checkOptions refuses what is a mistake of the caller.
func (m *model) checkOptions(o models.LoadOptions) error {
	switch {
	case o.Lo < 0 || o.Hi < o.Lo || o.Hi > m.Layers:
		return fmt.Errorf("layers %d..%d of a model with %d", o.Lo, o.Hi, m.Layers)
	case o.MaxTokens < 1:
		return fmt.Errorf("a step of %d tokens", o.MaxTokens)
	case o.Head && (o.MaxLogits < 1 || o.MaxLogits > o.MaxTokens):
		return fmt.Errorf("%d rows of logits in a step of %d tokens", o.MaxLogits, o.MaxTokens)
	case o.MaxPositions < 1 && o.Hi > o.Lo:
		return fmt.Errorf("rotary tables for %d positions", o.MaxPositions)
	case o.Experts != nil && o.Experts.Backend.ActType() != o.Backend.ActType():
		return fmt.Errorf("experts on %v compute with activations of %v, but %v has %v: %w", o.Experts.Backend.Device().Info().ID,
			o.Experts.Backend.ActType(), o.Backend.Device().Info().ID, o.Backend.ActType(), device.ErrNotSupported)
	}
	return nil
}

var _ models.Model = (*model)(nil)

// layer is the weights of one layer on a device.
type layer struct {
	inputNorm, postNorm vector         // [Hidden]
	qNorm, kNorm        vector         // [Dim], or none
	qkv                 kernels.Weight // [Heads.Cols, Hidden]
	qkvBias             vector
	o                   kernels.Weight // [Hidden, Q × Dim]
	oBias               vector
	router              kernels.Weight // [Experts, Hidden] of a mixture, whose gateUp and down are stacks; else nil
	gateUp              kernels.Weight // [2 × Intermediate, Hidden]
	gateUpBias          vector
	down                kernels.Weight // [Hidden, Intermediate]
	downBias            vector
}
