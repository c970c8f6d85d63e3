package devicemap

import (
	"fmt"
	"strconv"
	"strings"

	"infer/runtime/device"
)

// Part is one entry of a manual map: layers Lo..Hi (half-open) on a device.
// The first part also has the embedding, the last the head.
type Part struct {
	Device device.ID
	Lo, Hi int
}

// Parse reads a manual map for a model of n layers:
//
//	cuda:0                       everything on one device
//	cuda:0=0-11,cpu=12-23        layers 0 to 11 and 12 to 23, both inclusive
//
// "auto" and "" give no parts: the planner decides.
func Parse(s string, layers int) ([]Part, error) {
	s = strings.TrimSpace(s)
	if s == "" || s == "auto" {
		return nil, nil
	}
	if !strings.Contains(s, "=") {
		id, err := parseID(s)
		if err != nil {
			return nil, fmt.Errorf("device map %q: %w", s, err)
		}
		return []Part{{Device: id, Lo: 0, Hi: layers}}, nil
	}
	var parts []Part
	for entry := range strings.SplitSeq(s, ",") {
		name, span, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok {
			return nil, fmt.Errorf("device map %q: entry %q is not like cuda:0=0-11", s, entry)
		}
		id, err := parseID(name)
		if err != nil {
			return nil, fmt.Errorf("device map %q: %w", s, err)
		}
		first, last, isRange := strings.Cut(span, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo {
			return nil, fmt.Errorf("device map %q: layers %q are not like 0-11 or 5", s, span)
		}
		parts = append(parts, Part{Device: id, Lo: lo, Hi: hi + 1})
	}
	if err := covers(parts, layers); err != nil {
		return nil, err
	}
	return parts, nil
}

// covers verifies that the parts are all layers, in order.
func covers(parts []Part, layers int) error {
	next := 0
	for _, p := range parts {
		if p.Lo != next {
			return fmt.Errorf("device map: %v begins with layer %d, layer %d comes next: layers must be given in order, each once", p.Device, p.Lo, next)
		}
		if p.Hi <= p.Lo {
			return fmt.Errorf("device map: %v has no layers", p.Device)
		}
		if p.Hi > layers {
			return fmt.Errorf("device map: %v has layer %d, the model's last is %d", p.Device, p.Hi-1, layers-1)
		}
		next = p.Hi
	}
	if next != layers {
		return fmt.Errorf("device map: layers %d-%d are not placed", next, layers-1)
	}
	return nil
}

// parseID reads "cpu", "cpu:1", "cuda:0".
func parseID(s string) (device.ID, error) {
	kind, index, numbered := strings.Cut(s, ":")
	id := device.ID{Kind: device.Kind(kind)}
	if id.Kind != device.CPU && id.Kind != device.CUDA {
		return id, fmt.Errorf("unknown device %q: known are cpu, cpu:N and cuda:N", s)
	}
	if numbered {
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || strconv.Itoa(n) != index {
			return id, fmt.Errorf("device %q: %q is not a number", s, index)
		}
		id.Index = n
	} else if id.Kind == device.CUDA {
		return id, fmt.Errorf("device %q: say which, like cuda:0", s)
	}
	return id, nil
}
