package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// ComputeCapability names a GPU architecture as its maker does, like "8.9".
// The zero value is no GPU.
type ComputeCapability struct{ name string }

// Of is the capability that a driver gives as two numbers.
func Of(generation, variant int) ComputeCapability {
	return ComputeCapability{strconv.Itoa(generation) + "." + strconv.Itoa(variant)}
}

// Parse reads a capability like "12.0".
func Parse(s string) (ComputeCapability, error) {
	a, b, ok := strings.Cut(s, ".")
	g, err1 := strconv.Atoi(a)
	v, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || g < 0 || v < 0 || Of(g, v).name != s {
		return ComputeCapability{}, fmt.Errorf("compute capability %q is not like 8.9", s)
	}
	return ComputeCapability{s}, nil
}

func (c ComputeCapability) String() string { return c.name }

// generation is the part before the point: parts of one generation share it.
func (c ComputeCapability) generation() string {
	g, _, _ := strings.Cut(c.name, ".")
	return g
}
