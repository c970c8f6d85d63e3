package devicemap

import (
	"fmt"
	"strconv"
	"strings"

	"infer/runtime/device"
)

// Part is one entry of a manual map: layers Lo..Hi (half-open) on a device.
// The first part also has the embedding, the last the head; they may be
// without layers.
type Part struct {
	Device    device.ID
	Lo, Hi    int
	ExpertsOn device.ID // of the routed experts; the zero ID: Device
}

// Parse reads a manual map for a model of n layers:
//
//	cuda:0                       everything on one device
//	cuda:0=0-11,cpu=12-23        layers 0 to 11 and 12 to 23, both inclusive
//	cuda:0=0-11,cpu=12-          to the last
//	cuda:0=0-,experts=cpu        the routed experts of all layers on the CPU
//
// "auto" and "" give no parts: the planner decides.
func Parse(s string, layers int) ([]Part, error) {
	s = strings.TrimSpace(s)
	if s == "" || s == "auto" {
		return nil, nil
	}
	if !strings.Contains(s, "=") {
		id, err := ParseID(s)
		if err != nil {
			return nil, fmt.Errorf("device map %q: %w", s, err)
		}
		return []Part{{Device: id, Lo: 0, Hi: layers}}, nil
	}
	var parts []Part
	var experts device.ID
	for entry := range strings.SplitSeq(s, ",") {
		name, span, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok {
			return nil, fmt.Errorf("device map %q: entry %q is not like cuda:0=0-11", s, entry)
		}
		if name == "experts" {
			id, err := ParseID(span)
			if err != nil {
				return nil, fmt.Errorf("device map %q: %w", s, err)
			}
			experts = id
			continue
		}
		id, err := ParseID(name)
		if err != nil {
			return nil, fmt.Errorf("device map %q: %w", s, err)
		}
		lo, hi, err := span2(span, layers)
		if err != nil {
			return nil, fmt.Errorf("device map %q: %w", s, err)
		}
		parts = append(parts, Part{Device: id, Lo: lo, Hi: hi})
	}
	for _, p := range parts {
		if p.Hi <= p.Lo {
			return nil, fmt.Errorf("device map: %v has no layers", p.Device)
		}
	}
	if err := covers(parts, layers); err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].ExpertsOn = experts
	}
	return parts, nil
}

// span2 reads "5", "0-11", "12-" as a half-open range.
func span2(span string, layers int) (lo, hi int, err error) {
	first, last, isRange := strings.Cut(span, "-")
	lo, err1 := strconv.Atoi(first)
	var err2 error
	switch {
	case !isRange:
		hi = lo
	case last == "":
		hi = layers - 1
	default:
		hi, err2 = strconv.Atoi(last)
	}
	if err1 != nil || err2 != nil || lo < 0 || hi < lo && last != "" {
		return 0, 0, fmt.Errorf("layers %q are not like 0-11, 12- or 5", span)
	}
	return lo, hi + 1, nil
}

// covers verifies that the parts are all layers, in order. Only the first and
// the last part may be without layers.
func covers(parts []Part, layers int) error {
	next := 0
	for i, p := range parts {
		if p.Lo != next {
			return fmt.Errorf("device map: %v begins with layer %d, layer %d comes next: layers must be given in order, each once", p.Device, p.Lo, next)
		}
		if p.Hi < p.Lo || p.Hi == p.Lo && i > 0 && i < len(parts)-1 {
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

// ParseID reads "cpu", "cpu:1", "cuda:0".
func ParseID(s string) (device.ID, error) {
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
