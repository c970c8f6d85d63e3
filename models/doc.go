// Package models turns a checkpoint's config.json into a Model: sizes, the
// tensors it needs, and stages that run a range of its layers on one device.
//
//	config.json ─Open─► Model ─Load(layers lo..hi, backend)─► Stage ─Forward─► hidden or logits
//
// A family (models/llama, models/qwen3 …) registers itself by the names in
// config.json's "architectures" and only says what is particular to it; blocks
// that families share are in models/layers. Models know layers and weight
// names, never devices: all they do goes through kernels.Backend and Ops.
package models
