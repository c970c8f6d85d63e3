package layers

import (
	"bytes"
	"fmt"
	"math"

	"infer/models"
	"infer/runtime/kernels"
	"infer/runtime/loader"
)

// Sane limits: several times what any published model has. What passes them is
// compared with the checkpoint's tensors before anything is allocated.
const (
	maxLayers    = 4096
	maxWidth     = 1 << 22 // hidden, intermediate
	maxVocab     = 1 << 24
	maxHeads     = 1 << 14
	maxHeadDim   = 1 << 13
	maxPositions = 1 << 30 // a longer context is cut to this
)

// Names of tensors outside the layers.
const (
	embedName = "model.embed_tokens.weight"
	normName  = "model.norm.weight"
	headName  = "lm_head.weight"
)

// Spec says all about a decoder of pre-norm blocks with gated MLPs.
type Spec struct {
	models.Config
	Eps        float32
	Activation kernels.Activation
	Rotary     Rotary
	QKVBias    bool
	OBias      bool
	MLPBias    bool
	QKNorm     bool // RMSNorm on each head of Q and K
	MoE        *MoE // nil: every layer has one MLP
}

// Defaults are the values a family's class gives to keys that config.json
// leaves out.
type Defaults struct {
	MaxPositions int
	KVHeads      int     // 0: as many as attention heads
	HeadDim      int     // 0: hidden_size / num_attention_heads
	Eps          float64 // 0: 1e-6
	Theta        float64 // 0: 10,000
}

// ReadSpec reads the keys that all families share. Faults are in c.Err.
func ReadSpec(c *models.ConfigFile, d Defaults) Spec {
	var s Spec
	s.Architecture = c.String("model_type", "")
	if a := c.Strings("architectures"); len(a) > 0 {
		s.Architecture = a[0]
	}
	if c.Has("quantization_config") {
		method := "?"
		if q := c.Object("quantization_config"); q != nil {
			method = q.String("quant_method", method)
		}
		c.Fail("quantization_config", "has quant_method %.40q: quantized checkpoints are not supported, get one in BF16, F16 or F32", method)
	}
	s.VocabSize = c.Need("vocab_size", 1, maxVocab)
	s.Hidden = c.Need("hidden_size", 1, maxWidth)
	s.Intermediate = c.Need("intermediate_size", 1, maxWidth)
	s.Layers = c.Need("num_hidden_layers", 1, maxLayers)
	q := c.Need("num_attention_heads", 1, maxHeads)
	kv := d.KVHeads
	if kv == 0 || c.Null("num_key_value_heads") {
		kv = q
	}
	kv = c.Int("num_key_value_heads", kv, 1, maxHeads)
	if q%kv != 0 {
		c.Fail("num_key_value_heads", "is %d, which does not divide the %d of num_attention_heads", kv, q)
	}
	dim := d.HeadDim
	if !c.Has("head_dim") && (dim == 0 || c.Null("head_dim")) {
		if dim = s.Hidden / q; s.Hidden%q != 0 {
			c.Fail("hidden_size", "is %d, not a multiple of num_attention_heads %d, and head_dim is missing", s.Hidden, q)
		}
	}
	dim = c.Int("head_dim", dim, 1, maxHeadDim)
	if dim%2 != 0 {
		c.Fail("head_dim", "is %d: rotary positions need an even number", dim)
	}
	s.Heads = kernels.Heads{Q: q, KV: kv, Dim: dim}
	context := c.Int("max_position_embeddings", d.MaxPositions, 1, 1<<53)
	s.Tied = c.Bool("tie_word_embeddings", false)
	s.Eps = readEps(c, d.Eps)
	s.Activation = readActivation(c)
	s.Rotary = readRotary(c, dim, context, d.Theta)
	s.MaxPositions = min(s.Rotary.reach(context), maxPositions)
	s.StopIDs = c.IDs("eos_token_id")
	return s
}

func readEps(c *models.ConfigFile, otherwise float64) float32 {
	if otherwise == 0 {
		otherwise = 1e-6
	}
	eps := c.Float("rms_norm_eps", otherwise)
	if eps < 0 || eps > 1 {
		c.Fail("rms_norm_eps", "is %g, outside 0 to 1", eps)
	}
	return float32(eps)
}

func readActivation(c *models.ConfigFile) kernels.Activation {
	switch name := c.String("hidden_act", "silu"); name {
	case "silu", "swish":
		return kernels.SiLU
	case "gelu":
		return kernels.GELU
	case "gelu_new", "gelu_pytorch_tanh", "gelu_fast":
		return kernels.GELUTanh
	default:
		c.Fail("hidden_act", "is %.40q, which is not supported; supported are silu, gelu, gelu_new, gelu_pytorch_tanh", name)
		return kernels.SiLU
	}
}

// New makes the model. It settles which tensors embedding and head are.
func (s Spec) New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	if c.Err() != nil {
		return nil, c.Err()
	}
	m := &model{Spec: s, embed: embedName, head: headName, scale: float32(1 / math.Sqrt(float64(s.Heads.Dim)))}
	if s.MoE != nil {
		m.experts = s.MoE.names(ck)
	}
	if !s.Tied {
		return m, nil
	}
	// As transformers does: where a checkpoint has both, they are tied only if
	// they are equal; where it has only the head, that is the embedding too.
	e, haveEmbed := ck.Tensor(embedName)
	h, haveHead := ck.Tensor(headName)
	switch {
	case haveEmbed && haveHead:
		same, err := equal(e, h)
		if err != nil {
			return nil, fmt.Errorf("compare the tied embedding and head: %w", err)
		}
		m.Tied = same
	case haveHead:
		m.embed = headName
	}
	if m.Tied {
		m.head = m.embed
	}
	return m, nil
}

// equal compares two tensors' bytes with a bounded buffer.
func equal(a, b *loader.Tensor) (bool, error) {
	if a.DType != b.DType || a.Bytes != b.Bytes {
		return false, nil
	}
	const piece = 1 << 20
	n := min(a.Bytes, piece)
	x, y := make([]byte, n), make([]byte, n)
	for at := int64(0); at < a.Bytes; at += n {
		n := min(n, a.Bytes-at)
		if _, err := a.ReadAt(x[:n], at); err != nil {
			return false, err
		}
		if _, err := b.ReadAt(y[:n], at); err != nil {
			return false, err
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return false, nil
		}
	}
	return true, nil
}
