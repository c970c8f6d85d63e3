package transfer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// Kind of a corruption.
type Kind string

// The kinds, as the bytes at the destination show them.
const (
	NeverWritten Kind = "never written" // still what the destination held before
	Stale        Kind = "stale"         // what an earlier copy brought
	Zeros        Kind = "zeros"
	FlippedBits  Kind = "flipped bits"
	Shifted      Kind = "shifted"
	OtherBytes   Kind = "other bytes"
)

// Corruption is a copy that reported success and brought other bytes.
type Corruption struct {
	Kind     Kind   `json:"kind"`
	Size     int64  `json:"size"`     // of the copy
	Offset   int64  `json:"offset"`   // of the first wrong byte
	Wrong    int64  `json:"wrong"`    // bytes
	Expected string `json:"expected"` // hexadecimal, up to 8 bytes from Offset
	Got      string `json:"got"`
	Shift    int    `json:"shift,omitempty"` // bytes, of Shifted; positive: late
	During   string `json:"during,omitempty"`
}

func (c *Corruption) String() string {
	s := string(c.Kind)
	if c.Kind == Shifted {
		s += fmt.Sprintf(" by %d bytes", c.Shift)
	}
	s += fmt.Sprintf(" from byte %d of %d (expected %s, got %s; %d bytes wrong)", c.Offset, c.Size, c.Expected, c.Got, c.Wrong)
	if c.During != "" {
		s += ", " + c.During
	}
	return s
}

// Classify says how got differs from want; nil when it does not. sentinel is
// what the destination held before the copy, earlier what the copy before
// brought (nil: nothing). All have the same length.
func Classify(want, got, sentinel, earlier []byte) *Corruption {
	first, last, wrong, flipped := -1, 0, int64(0), 0
	for i := range want {
		if want[i] != got[i] {
			if first < 0 {
				first = i
			}
			last = i
			wrong++
			flipped += bits.OnesCount8(want[i] ^ got[i])
		}
	}
	if first < 0 {
		return nil
	}
	c := &Corruption{
		Kind: OtherBytes, Size: int64(len(want)), Offset: int64(first), Wrong: wrong,
		Expected: hex.EncodeToString(want[first:min(first+8, len(want))]),
		Got:      hex.EncodeToString(got[first:min(first+8, len(got))]),
	}
	bad := got[first : last+1]
	same := func(o []byte) bool { return o != nil && bytes.Equal(bad, o[first:last+1]) }
	// A few flipped bits may by chance look like another kind; the others come
	// in long runs.
	few := flipped <= 1+len(want)/512 && int64(flipped) <= 2*wrong
	switch {
	case few && wrong < 16:
		c.Kind = FlippedBits
	case same(sentinel):
		c.Kind = NeverWritten
	case same(earlier):
		c.Kind = Stale
	case len(bytes.Trim(bad, "\x00")) == 0:
		c.Kind = Zeros
	default:
		if k := shift(want, got, first, last); k != 0 {
			c.Kind, c.Shift = Shifted, k
		} else if few {
			c.Kind = FlippedBits
		}
	}
	return c
}

// shift finds k with got[i] == want[i−k] over the wrong bytes; 0 for none.
func shift(want, got []byte, first, last int) int {
	fits := func(k int) bool {
		n := 0
		for i := first; i <= last; i++ {
			if j := i - k; j >= 0 && j < len(want) {
				if got[i] != want[j] {
					return false
				}
				n++
			}
		}
		return n >= 8
	}
	for k := 1; k <= 256; k++ {
		if fits(k) {
			return k
		}
		if fits(-k) {
			return -k
		}
	}
	return 0
}
