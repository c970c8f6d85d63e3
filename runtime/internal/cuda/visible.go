package cuda

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// The driver's own rules for which GPUs a program sees and in what order. A
// real driver applies them itself, when it is initialised; visible is for
// simulated machines, whose driver reads no environment.

// candidate is a GPU as far as the rules look at it.
type candidate struct {
	UUID  string
	PCI   string
	Speed float64 // any measure; larger is faster
}

// checkVisible refuses what is no GPU to us, before a driver is asked.
func checkVisible(devices string) error {
	for entry := range strings.SplitSeq(devices, ",") {
		if e := strings.TrimSpace(entry); strings.HasPrefix(strings.ToUpper(e), "MIG-") {
			return fmt.Errorf("CUDA_VISIBLE_DEVICES: %q is a slice of a GPU (MIG), which is not supported: name whole GPUs, by number or by UUID (GPU-…)", e)
		}
	}
	return nil
}

// visible says which candidates are seen and in what order, as numbers into
// cs. order is CUDA_DEVICE_ORDER: PCI_BUS_ID, FASTEST_FIRST, or "" for the
// order of cs. devices is CUDA_VISIBLE_DEVICES, given when set: numbers into
// that order, or UUIDs by any unambiguous beginning. The first entry that
// names no GPU ends the list; one that names a GPU again empties it. note
// tells people what was left out; "" when nothing.
func visible(cs []candidate, order, devices string, set bool) (seen []int, note string) {
	all := make([]int, len(cs))
	for i := range all {
		all[i] = i
	}
	switch order {
	case "PCI_BUS_ID":
		sort.SliceStable(all, func(i, j int) bool { return cs[all[i]].PCI < cs[all[j]].PCI })
	case "FASTEST_FIRST":
		sort.SliceStable(all, func(i, j int) bool { return cs[all[i]].Speed > cs[all[j]].Speed })
	}
	if !set {
		return all, ""
	}
	byUUID := strings.HasPrefix(devices, "GPU-")
	for entry := range strings.SplitSeq(devices, ",") {
		at := -1
		if byUUID {
			at = byPrefix(cs, strings.TrimSpace(entry))
		} else if n := leadingNumber(strings.TrimSpace(entry)); n >= 0 && n < len(all) {
			at = all[n]
		}
		if at < 0 {
			break
		}
		for _, s := range seen {
			if s == at {
				return nil, fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s names a GPU twice, which hides all of them", devices)
			}
		}
		seen = append(seen, at)
	}
	return seen, listNote(devices, len(seen))
}

// listNote tells people that a list shows fewer GPUs than it has entries.
func listNote(devices string, seen int) string {
	listed := 0
	if t := strings.TrimSpace(devices); t != "" && !strings.HasPrefix(t, "-1") {
		listed = strings.Count(devices, ",") + 1
	}
	switch {
	case seen < listed:
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s lists %d, of which %d are visible: an entry that names no GPU ends the list", devices, listed, seen)
	case seen == 0:
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s hides every GPU", devices)
	}
	return ""
}

// byPrefix is the one candidate whose UUID begins so; −1 when none or several do.
func byPrefix(cs []candidate, prefix string) int {
	at := -1
	for i := range cs {
		if len(prefix) > len("GPU-") && strings.HasPrefix(cs[i].UUID, prefix) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// leadingNumber reads the digits s begins with, as C's strtoul does: "1gpu" is
// 1. −1 when there are none.
func leadingNumber(s string) int {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return -1
	}
	return n
}
