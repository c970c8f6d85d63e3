// Package loader reads checkpoints: safetensors headers, shards, the index and
// the JSON files beside them.
package loader

// Checkpoint is an opened model folder: headers only, no weights in memory.
type Checkpoint struct{}
