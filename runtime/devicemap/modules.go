package devicemap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infer/runtime/device"
)

// ParseModules reads a map as Hugging Face's accelerate writes it: a JSON
// object from module names to devices, a number n being cuda:n. An entry
// places what is below the module too, unless a longer name does.
//
//	{"model.embed_tokens": 0, "model.layers.0": 0, …, "model.layers.0.mlp.experts": "cpu", "lm_head": 1}
//
// A layer is on one device; only routed experts can be on another. The final
// norm goes with the head.
func ParseModules(raw []byte, layers int, tied, experts bool) ([]Part, error) {
	var entries map[string]any
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("device map: not a JSON object of modules and devices: %w", err)
	}
	m := modules{on: map[string]device.ID{}, experts: experts, layers: layers}
	for name, v := range entries {
		m.names = append(m.names, name)
		id, err := moduleDevice(v)
		if err != nil {
			return nil, fmt.Errorf("device map: module %q: %w", name, err)
		}
		m.on[name] = id
	}
	slices.Sort(m.names) // so that the first fault is always the same
	for _, name := range m.names {
		if err := m.known(name); err != nil {
			return nil, err
		}
	}
	return m.parts(tied)
}

func moduleDevice(v any) (device.ID, error) {
	switch v := v.(type) {
	case float64:
		if n := int(v); n >= 0 && float64(n) == v && n < 1<<16 {
			return device.ID{Kind: device.CUDA, Index: n}, nil
		}
	case string:
		if _, err := strconv.Atoi(v); err == nil {
			v = string(device.CUDA) + ":" + v
		}
		if v == "disk" {
			return device.ID{}, fmt.Errorf("on disk: weights are not read from disk in each step; put it on the cpu")
		}
		return ParseID(v)
	}
	return device.ID{}, fmt.Errorf("device %v: want a number, cuda:N or cpu", v)
}

type modules struct {
	names   []string
	on      map[string]device.ID
	layers  int
	experts bool
}

// Modules beside the layers.
const (
	embedModule = "model.embed_tokens"
	normModule  = "model.norm"
	headModule  = "lm_head"
)

func layerModule(l int) string { return "model.layers." + strconv.Itoa(l) }

// known refuses names that no model here has.
func (m *modules) known(name string) error {
	switch name {
	case "", "model", "model.layers", embedModule, normModule, headModule, "model.rotary_emb":
		return nil
	}
	if rest, ok := strings.CutPrefix(name, "model.layers."); ok {
		number, _, _ := strings.Cut(rest, ".")
		if l, err := strconv.Atoi(number); err == nil && l >= 0 && strconv.Itoa(l) == number {
			if l >= m.layers {
				return fmt.Errorf("device map: module %q: the model's last layer is %d", name, m.layers-1)
			}
			return nil
		}
	}
	for _, parent := range []string{embedModule, normModule, headModule, "model.rotary_emb"} {
		if strings.HasPrefix(name, parent+".") {
			return nil
		}
	}
	return fmt.Errorf("device map: module %q is unknown: modules are %s, model.layers.N, %s, %s", name, embedModule, normModule, headModule)
}

// place finds the entry with the longest name that is the module or above it.
func (m *modules) place(module string) (device.ID, bool) {
	for name := module; ; {
		if id, ok := m.on[name]; ok {
			return id, true
		}
		if name == "" {
			return device.ID{}, false
		}
		name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	}
}

// layer gives a layer's device, and that of its experts.
func (m *modules) layer(l int) (id, experts device.ID, err error) {
	module := layerModule(l)
	var below []string
	for _, name := range m.names {
		if strings.HasPrefix(name, module+".") {
			below = append(below, name)
		}
	}
	id, ok := m.place(module)
	var rest, mixture []string
	for _, name := range below {
		if part := name[len(module)+1:]; part == "mlp" || part == "block_sparse_moe" || strings.Contains(part+".", ".experts.") {
			mixture = append(mixture, name)
		} else {
			rest = append(rest, name)
		}
	}
	if !ok {
		if len(rest) == 0 {
			return id, id, fmt.Errorf("device map: module %q is placed by no entry", module)
		}
		id = m.on[rest[0]]
	}
	for _, name := range rest {
		if m.on[name] != id {
			return id, id, fmt.Errorf("device map: module %q is on %v, but layer %d is on %v: a layer is on one device, only routed experts can be on another", name, m.on[name], l, id)
		}
	}
	experts = id
	for i, name := range mixture {
		switch e := m.on[name]; {
		case e == id && experts == id:
		case !m.experts:
			return id, id, fmt.Errorf("device map: module %q is on %v, but layer %d is on %v: this model has no routed experts, which alone can be on another device", name, e, l, id)
		case i > 0 && experts != id && e != experts:
			return id, id, fmt.Errorf("device map: module %q is on %v, but other experts of layer %d are on %v: they are on one device", name, e, l, experts)
		default:
			experts = e
		}
	}
	return id, experts, nil
}

func (m *modules) parts(tied bool) ([]Part, error) {
	embed, ok := m.place(embedModule)
	if !ok {
		return nil, fmt.Errorf("device map: module %q is placed by no entry", embedModule)
	}
	var parts []Part
	for l := range m.layers {
		id, experts, err := m.layer(l)
		if err != nil {
			return nil, err
		}
		if experts == id {
			experts = device.ID{}
		}
		if n := len(parts); n > 0 && parts[n-1].Device == id && parts[n-1].ExpertsOn == experts {
			parts[n-1].Hi = l + 1
		} else {
			parts = append(parts, Part{Device: id, Lo: l, Hi: l + 1, ExpertsOn: experts})
		}
	}
	if parts[0].Device != embed {
		parts = slices.Insert(parts, 0, Part{Device: embed})
	}
	head, ok := m.place(headModule)
	switch last := parts[len(parts)-1]; {
	case !ok && tied:
	case !ok:
		return nil, fmt.Errorf("device map: module %q is placed by no entry", headModule)
	case head != last.Device:
		parts = append(parts, Part{Device: head, Lo: m.layers, Hi: m.layers})
	}
	return parts, nil
}
