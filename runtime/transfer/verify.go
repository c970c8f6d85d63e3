package transfer

import (
	"fmt"
	"strconv"
	"strings"
)

// Verify says which steps' copies are verified. The zero value verifies all.
type Verify struct {
	off   bool
	every uint64 // one step in so many; 0 and 1: all
}

// VerifyOff verifies nothing.
var VerifyOff = Verify{off: true}

// ParseVerify reads "always", "sampled:N" or "off".
func ParseVerify(s string) (Verify, error) {
	switch s {
	case "always":
		return Verify{}, nil
	case "off":
		return VerifyOff, nil
	}
	if text, ok := strings.CutPrefix(s, "sampled:"); ok {
		if n, err := strconv.ParseUint(text, 10, 32); err == nil && n > 0 {
			return Verify{every: n}, nil
		}
	}
	return Verify{}, fmt.Errorf("verify %q: want always, sampled:N (one step in N) or off", s)
}

func (v Verify) String() string {
	switch {
	case v.off:
		return "off"
	case v.every > 1:
		return "sampled:" + strconv.FormatUint(v.every, 10)
	}
	return "always"
}

// Step tells whether a step's copies are verified.
func (v Verify) Step(n uint64) bool {
	return !v.off && (v.every <= 1 || n%v.every == 0)
}
