// Package llama is the Llama family: Llama 1 to 3.x, SmolLM2 and the many
// models that share their architecture.
//
//	config.json ─New─► layers.Spec + attention_bias on q, k, v, o + mlp_bias
//
// It must hold only what differs from the shared decoder block.
package llama
