package main

import (
	"fmt"
	"strings"

	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// memoryLimits reads --max-memory: bytes by device.
func (f *computeFlags) memoryLimits() (map[string]int64, error) {
	limits := map[string]int64{}
	if f.maxMemory == "" {
		return limits, nil
	}
	for entry := range strings.SplitSeq(f.maxMemory, ",") {
		name, text, ok := strings.Cut(strings.TrimSpace(entry), "=")
		n, err := parseSize(text)
		if !ok || err != nil {
			return nil, usagef("--max-memory %s: want entries like cpu=8GiB", f.maxMemory)
		}
		limits[name] = n
	}
	return limits, nil
}

// deviceMap is the plan as infer run --json and /health show it.
type deviceMap struct {
	Weights    string        `json:"weights"`  // as-stored, q8 or q4
	KVCache    string        `json:"kv_cache"` // element type
	Stages     []deviceStage `json:"stages"`
	Blocks     int           `json:"kv_blocks"`
	MaxContext int           `json:"max_context"`
	Reasons    []string      `json:"reasons"`
}

type deviceStage struct {
	Device string          `json:"device"`
	Layers string          `json:"layers"`
	Bytes  devicemap.Bytes `json:"bytes"`
}

// where is like "cpu (AMD EPYC, 2 threads, avx2+fma+f16c), weights q8".
func (s *session) where() string {
	if s.format == kernels.AsStored {
		return s.devices.String()
	}
	return s.devices.String() + ", weights " + s.format.String()
}

// kvName is a type of K/V as --kv-cache has it.
func kvName(d tensor.DType) string {
	if d == tensor.I8 {
		return "q8"
	}
	return strings.ToLower(d.String())
}

func (s *session) deviceMap() deviceMap {
	m := deviceMap{
		Weights: s.format.String(), KVCache: kvName(s.devices.used[0].KVType()),
		Blocks: s.plan.Blocks, MaxContext: s.plan.MaxContext, Reasons: s.plan.Reasons,
	}
	for _, st := range s.plan.Stages {
		m.Stages = append(m.Stages, deviceStage{
			Device: st.Device.String(), Layers: fmt.Sprintf("%d-%d", st.Lo, st.Hi-1), Bytes: st.Bytes,
		})
	}
	return m
}
