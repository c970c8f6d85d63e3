//go:build !(cuda && cgo && linux)

package cuda

import "unsafe"

// Open returns ErrNotBuilt: this program has no door to a driver.
func Open() (*Driver, error) { return nil, ErrNotBuilt }

// Install returns ErrNotBuilt.
func Install(map[string]unsafe.Pointer, Facts) (uninstall func(), err error) {
	return nil, ErrNotBuilt
}

func released() {}
