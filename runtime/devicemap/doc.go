// Package devicemap decides which layers of a model run on which device, and
// how much memory each kind of data gets there.
//
//	Input: sizes of the model, Infos of the devices, links, batch and context
//	  │  pure: opens nothing, reads no clock, iterates no map
//	  ▼
//	Plan:  stage 0  cuda:0  embedding, layers 0..12   weights │ K/V │ activations │ workspace │ reserve
//	       stage 1  cpu     layers 12..16, head       weights │ K/V │ activations │ workspace │ reserve
//
// Auto minimises the predicted time of a decode step over contiguous stages
// and orders of devices, within memory; Fixed takes the user's map. Both then
// give the memory that is left to K/V. All stages have the same number of K/V
// blocks, because a block table serves the whole plan. What does not fit is an
// error with the numbers, before anything is loaded.
//
// The same input gives the same plan, and more memory never a slower one.
package devicemap
