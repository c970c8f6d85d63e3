package main

import (
	"infer/api"
	"infer/runtime/engine"
	"infer/runtime/transfer"
)

// apiStats is the engine's state as /metrics shows it.
func (s *session) apiStats() api.Stats {
	st := s.engine.Stats()
	var memory []api.DeviceMemory
	for _, m := range s.engine.Memory() {
		memory = append(memory, api.DeviceMemory{Device: m.Device.String(), Planned: m.Planned.Used(), Used: m.Used})
	}
	return api.Stats{
		Memory:  memory,
		Running: st.Running, Waiting: st.Waiting,
		BlocksUsed: st.BlocksUsed, BlocksTotal: st.BlocksAll, BlockSize: st.BlockSize,
		PrefixQueries: int64(st.CacheQueries), PrefixHits: int64(st.CacheHits), Preemptions: int64(st.Preemptions),
		Drafted: int64(st.Drafted), Accepted: int64(st.Accepted),
		Steps: int64(st.Steps), FailedSteps: int64(st.FailedSteps), StepTime: st.StepTime, Failed: st.Failed,
		Devices: s.apiDevices(st),
	}
}

// apiDevices is what goes on between devices; nothing for a CPU alone.
func (s *session) apiDevices(st engine.Stats) api.Devices {
	if s.router == nil {
		return api.Devices{}
	}
	d := api.Devices{
		Verify: s.verify, Replays: int64(st.Replays), Lost: int64(st.DevicesLost), Recovering: st.Recovering,
		ScrubBytes: int64(st.ScrubBytes), ScrubPasses: int64(st.ScrubPasses), ScrubFaults: int64(st.ScrubFaults),
	}
	for _, l := range s.router.Links() {
		bytes := map[string]uint64{}
		for _, r := range []transfer.Route{transfer.HostStaged, transfer.PeerDirect} {
			bytes[r.Label()] = l.Bytes[r]
		}
		d.Links = append(d.Links, api.Link{
			From: l.From, To: l.To, Route: l.Route.Label(), Why: l.Why(), Probe: string(l.Finding.Verdict), Quarantined: l.Quarantined,
			Verified: l.Verified, Mismatched: l.Mismatched, Bytes: bytes,
		})
	}
	return d
}
