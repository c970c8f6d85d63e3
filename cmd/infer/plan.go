package main

import (
	"strings"

	"github.com/rs/zerolog"

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
	Weights      string               `json:"weights"`  // as-stored, q8 or q4
	KVCache      string               `json:"kv_cache"` // element type
	Stages       []plannedStage       `json:"stages"`
	Blocks       int                  `json:"kv_blocks"`
	MaxContext   int                  `json:"max_context"`
	MicroBatches int                  `json:"micro_batches"`
	Predicted    devicemap.Prediction `json:"predicted"`
	Reasons      []string             `json:"reasons"`
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
	p := s.engine.Plan() // another one after a device was lost
	return deviceMap{
		Weights: s.format.String(), KVCache: kvName(s.devices.inUse()[0].KVType()),
		Stages: plannedStages(p), Blocks: p.Blocks, MaxContext: p.MaxContext,
		MicroBatches: p.MicroBatches, Predicted: p.Predicted, Reasons: p.Reasons,
	}
}

// logPlan says at start-up where the model runs, and why.
func (s *session) logPlan(log zerolog.Logger) {
	for _, st := range s.plan.Stages {
		e := log.Info().Str("device", st.Device.String()).Str("weights", size(st.Bytes.Weights)).Str("kv", size(st.Bytes.KV)).
			Str("activations", size(st.Bytes.Activations+st.Bytes.Workspace))
		if st.Split() {
			e = e.Str("experts_on", st.ExpertsOn.String()).Str("experts", size(st.Away.Weights))
		}
		e.Msg(st.String())
	}
	for _, reason := range s.plan.Reasons {
		log.Info().Msg(reason)
	}
}

// logMemory holds the memory that is used against the plan.
func (s *session) logMemory(log zerolog.Logger) {
	for _, m := range s.engine.Memory() {
		if m.Off() {
			log.Warn().Str("device", m.Device.String()).Int64("planned", m.Planned.Used()).Int64("used", m.Used).
				Msg("memory differs from the plan by more than 2 %")
		}
	}
}
