package main

import "infer/api"

// apiStats is the engine's state as /metrics shows it.
func (s *session) apiStats() api.Stats {
	st := s.engine.Stats()
	return api.Stats{
		Running: st.Running, Waiting: st.Waiting,
		BlocksUsed: st.BlocksUsed, BlocksTotal: st.BlocksAll, BlockSize: st.BlockSize,
		PrefixQueries: int64(st.CacheQueries), PrefixHits: int64(st.CacheHits), Preemptions: int64(st.Preemptions),
		Drafted: int64(st.Drafted), Accepted: int64(st.Accepted),
		Steps: int64(st.Steps), FailedSteps: int64(st.FailedSteps), StepTime: st.StepTime, Failed: st.Failed,
	}
}
