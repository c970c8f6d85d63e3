// Package mistral is the Mistral family: 7B, Nemo, Small.
//
//	config.json ─New─► layers.Spec + one sliding window for all layers
//
// It must hold only what differs from the shared decoder block.
package mistral
