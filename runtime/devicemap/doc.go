// Package devicemap decides which layers of a model run on which device, and
// how much memory each kind of data gets there.
//
//	Input: sizes of the model, Infos of the devices, batch and context
//	  │  pure: opens nothing, reads no clock, iterates no map
//	  ▼
//	Plan:  stage 0  cuda:0  embedding, layers 0..12   weights │ K/V │ activations │ reserve
//	       stage 1  cpu     layers 12..16, head       weights │ K/V │ activations │ reserve
//
// All stages have the same number of K/V blocks, because a block table serves
// the whole plan. What does not fit is an error with the numbers, before
// anything is loaded.
package devicemap
