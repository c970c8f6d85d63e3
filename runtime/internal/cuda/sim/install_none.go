//go:build !cuda || !cgo || !linux

package sim

import "infer/runtime/internal/cuda"

// Install is not possible: this program has no door to a driver.
func (m *Machine) Install() (uninstall func(), err error) { return nil, cuda.ErrNotBuilt }
