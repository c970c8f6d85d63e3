// Package qwen3 is the dense Qwen3 family.
//
//	config.json ─New─► layers.Spec + norm on every head of q and k
//
// It must hold only what differs from the shared decoder block.
package qwen3
