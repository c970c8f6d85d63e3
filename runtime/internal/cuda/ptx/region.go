package ptx

import (
	"fmt"
	"sort"
)

// Region is one allocation of device memory.
type Region struct {
	Base     uint64 // device address of Data[0]
	Data     []byte // must start at a host address aligned like Base, to 16 bytes
	ReadOnly bool
	// Init marks the bytes that were written, one byte for each of Data; nil:
	// not tracked. Every launch sets the marks of what it writes; with
	// CheckGlobalInit reading an unmarked byte is a fault.
	Init []byte
	Name string // for reports
}

// Memory is the device memory a launch may touch. Region is called from many
// goroutines. It returns the allocation that holds addr, or false: then the
// access is an illegal address. A region it returned stays valid and in place
// until the launch ends; addresses have their top byte zero.
type Memory interface {
	Region(addr uint64) (Region, bool)
}

// Regions is a Memory of fixed regions that do not overlap.
type Regions []Region

// Region finds the region that holds addr.
func (rs Regions) Region(addr uint64) (Region, bool) {
	for _, r := range rs {
		if addr-r.Base < uint64(len(r.Data)) {
			return r, true
		}
	}
	return Region{}, false
}

// nearest says how an address lies to the allocations that can be listed.
func (w *warp) nearest(addr uint64) string {
	rs, ok := w.blk.l.mem.(Regions)
	if !ok || len(rs) == 0 {
		return "no allocation of this device holds it"
	}
	by := append(Regions(nil), rs...)
	sort.Slice(by, func(i, j int) bool { return by[i].Base < by[j].Base })
	i := sort.Search(len(by), func(i int) bool { return by[i].Base > addr })
	const far = 1 << 32 // no way of counting wrong by a little
	if i > 0 {
		p := by[i-1]
		if addr-p.Base-uint64(len(p.Data)) > far {
			return "no allocation is near"
		}
		return fmt.Sprintf("%d bytes behind the end of %s (%d bytes at %#x)", addr-p.Base-uint64(len(p.Data)), p.label(), len(p.Data), p.Base)
	}
	if by[0].Base-addr > far {
		return "no allocation is near"
	}
	return fmt.Sprintf("%d bytes before %s (%d bytes at %#x)", by[0].Base-addr, by[0].label(), len(by[0].Data), by[0].Base)
}

func (r Region) label() string {
	if r.Name == "" {
		return "an allocation"
	}
	return r.Name
}
