//go:build !linux

package cpu

import "runtime"

func cores() int { return 0 }

// yield lets another thread have the processor, if one waits for it.
func yield() { runtime.Gosched() }

type placement struct{}

func newPlacement(int) placement { return placement{} }

func (placement) bind(int) {}
