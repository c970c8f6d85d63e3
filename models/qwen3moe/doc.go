// Package qwen3moe is the Qwen3 family with mixtures of experts: 30B-A3B,
// 235B-A22B.
//
//	config.json ─New─► layers.Spec + norm on every head of q and k + mixtures of experts
//
// It must hold only what differs from the shared decoder block.
package qwen3moe
