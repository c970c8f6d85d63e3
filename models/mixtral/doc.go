// Package mixtral is the Mixtral family: 8x7B, 8x22B.
//
//	config.json ─New─► layers.Spec + a mixture of experts in every layer
//
// It must hold only what differs from the shared decoder block.
package mixtral
