// Package cuda is the only door to the GPU driver.
//
//	Open ─dlopen─► libcuda   ┐
//	     ─Install─► simulated ┴─► table ─► shim (cu… symbols) ─► gorgonia.org/cu, own calls
//	                                                                    │
//	Driver ─Device(i)─► owner: one goroutine on one OS thread ─Run/Post─► Thread
//
// The program links no CUDA library: the driver's functions are defined by
// shim.c, each forwarding to a table that Open fills from the driver it finds
// (or that Install filled with a simulated one). So one binary starts on a
// machine without a driver, with a driver but no GPU, and with GPUs. The build
// tag cuda (with cgo, on Linux) puts this in; without it the same API is there
// and Open returns ErrNotBuilt.
//
// All calls for a GPU are made by its owner. A Thread is the right to make
// them; it is given to the function that Run or Post carries there, and is
// worth nothing outside of it.
//
// Every error of the driver is an *Error: the driver's name for it, its text,
// the call and the device.
//
// This package knows bytes, addresses, streams and kernels; it must never know
// tensors' meaning, models or schedules, and nothing else may call the driver.
package cuda
