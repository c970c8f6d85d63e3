// Package qwen2 is the Qwen2 family: Qwen2 and Qwen2.5, and the models
// distilled into them.
//
//	config.json ─New─► layers.Spec + biases on q, k, v + windows of upper layers
//
// It must hold only what differs from the shared decoder block.
package qwen2
