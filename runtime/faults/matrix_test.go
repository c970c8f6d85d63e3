package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"infer/runtime/device"
	"infer/runtime/engine"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/transfer"
)

var (
	full     = flag.Bool("full", false, "the whole matrix, not only its core")
	machines = flag.String("topologies", "", "a folder of more machines, whose own faults are tried")
	table    = flag.String("table", "", "a file to write the table of outcomes to")
)

// fault is one way in which a machine can be wrong.
type fault struct {
	name   string
	faults func(n int) []sim.Fault // of a machine of n GPUs, in its description
	inject func(n int) []sim.Fault // once the model is loaded
	// silent faults change tokens when nobody looks.
	silent bool
	scrub  bool // is found by looking at weights while idle
	// hopeless faults may end in an error with a name.
	hopeless bool
	timeout  time.Duration // of a step
}

// link is a fault of the ways between GPUs.
func link(f sim.Fault) func(int) []sim.Fault {
	f.From, f.To, f.Device = sim.Any, sim.Any, sim.Any
	return func(int) []sim.Fault { return []sim.Fault{f} }
}

// on is a fault of the last GPU, which has the head of the model, unless the
// CPU has.
func on(f sim.Fault) func(int) []sim.Fault {
	return func(n int) []sim.Fault {
		f.From, f.To, f.Device = sim.Any, sim.Any, n-1
		return []sim.Fault{f}
	}
}

// often has a fault so many times.
func often(times int, f func(int) []sim.Fault) func(int) []sim.Fault {
	return func(n int) (list []sim.Fault) {
		for range times {
			list = append(list, f(n)...)
		}
		return list
	}
}

func way(from, to func(n int) int, f sim.Fault) func(int) []sim.Fault {
	return func(n int) []sim.Fault {
		f.From, f.To, f.Device = from(n), to(n), sim.Any
		return []sim.Fault{f}
	}
}

func first(int) int  { return 0 }
func second(int) int { return 1 }
func last(n int) int { return n - 1 }
func host(int) int   { return sim.Host }

var all = []fault{
	{name: "zeros", silent: true, faults: link(sim.Fault{Kind: sim.Zeros})},
	{name: "stale", silent: true, faults: link(sim.Fault{Kind: sim.Stale})},
	{name: "one bit in every 3rd copy", silent: true, faults: link(sim.Fault{Kind: sim.BitFlip, Every: 3})},
	{name: "shifted", silent: true, faults: link(sim.Fault{Kind: sim.Shift})},
	{name: "first half only", silent: true, faults: link(sim.Fault{Kind: sim.Partial})},
	{name: "right, then corrupt", silent: true, inject: link(sim.Fault{Kind: sim.Garbage, After: 1})},
	{name: "one bit, in production only", silent: true, inject: link(sim.Fault{Kind: sim.BitFlip})},
	{name: "only under concurrent traffic", faults: link(sim.Fault{Kind: sim.Garbage, Busy: true})},
	{name: "only one direction", silent: true, faults: way(first, second, sim.Fault{Kind: sim.Zeros})},
	{name: "only for kernels that read peers", faults: link(sim.Fault{Kind: sim.Garbage, Paths: []sim.Path{sim.PeerKernel}})},
	{name: "slow", faults: link(sim.Fault{Kind: sim.Slow})},
	{name: "hang", faults: link(sim.Fault{Kind: sim.Hang})},
	{name: "hang, in production only", timeout: hangTimeout, inject: link(sim.Fault{Kind: sim.Hang, Times: 1})},
	{name: "error code", faults: link(sim.Fault{Kind: sim.Failing})},
	{name: "error code, in production only", inject: link(sim.Fault{Kind: sim.Failing, After: 1, Times: 1})},
	{name: "driver claims access it lacks", silent: true, faults: link(sim.Fault{Kind: sim.DriverLies})},
	{name: "device lost in a step", inject: on(sim.Fault{Kind: sim.Lost, After: 20})},
	{name: "out of memory while loading", faults: on(sim.Fault{Kind: sim.NoMemory, After: 7, Times: 1})},
	{name: "weight bit-rot", silent: true, scrub: true, inject: often(100, on(sim.Fault{Kind: sim.BitRot}))},
	{name: "capability unknown", faults: on(sim.Fault{Kind: sim.UnknownCapability})},
	{name: "way up corrupt, every 7th copy", silent: true, inject: way(host, last, sim.Fault{Kind: sim.BitFlip, Every: 7})},
	{name: "way down corrupt, every 5th copy", silent: true, inject: way(last, host, sim.Fault{Kind: sim.BitFlip, Every: 5})},
	{name: "way up corrupt for good", hopeless: true, faults: way(host, last, sim.Fault{Kind: sim.Garbage})},
	{name: "way down corrupt for good", hopeless: true, inject: way(last, host, sim.Fault{Kind: sim.Zeros})},
}

// places are the machines that every fault is put into.
var places = []struct {
	topology string
	offload  bool
	core     bool
}{
	{"2x4090-patched-chipset", false, true},
	{"2x4090-patched-chipset", true, false},
	{"2xh100nvl-plus-one", false, false},
	{"4xa100-sxm-mesh", false, false},
	{"8xh100-sxm-nvswitch", false, false},
	{"7gpu-mixed-generations", true, false},
}

// one is a cell of the matrix.
type one struct {
	machine, fault, load string
	setup
	silent, hopeless bool
}

// cells of the matrix.
func cells(t testing.TB) []one {
	var list []one
	for _, p := range places {
		for k, f := range all {
			for i, l := range loads {
				if !*full && (!p.core || i != k%len(loads)) {
					continue
				}
				list = append(list, cell(topology(t, p.topology), p.topology, f, l, p.offload))
			}
		}
	}
	own := topologies(t, "testdata/topologies")
	if *machines != "" {
		for name, spec := range topologies(t, *machines) {
			own[name] = spec
		}
	}
	for i, name := range sortedKeys(own) {
		for j, l := range loads {
			if *full || j == i%len(loads) && len(own[name].Devices) < 5 {
				c := cell(own[name], name, fault{name: "its own"}, l, false)
				list = append(list, c)
			}
		}
	}
	return list
}

func sortedKeys[T any](m map[string]T) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func cell(spec sim.Spec, machine string, f fault, l load, offload bool) one {
	n := len(spec.Devices)
	spec.Faults = slices.Clone(spec.Faults)
	if f.faults != nil {
		spec.Faults = append(spec.Faults, f.faults(n)...)
	}
	c := one{machine: machine, fault: f.name, load: l.name, silent: f.silent, hopeless: f.hopeless}
	c.setup = setup{spec: spec, load: l, offload: offload, probe: true}
	if offload {
		c.machine += " + CPU"
	}
	c.scrub, c.timeout = f.scrub, f.timeout
	if f.inject != nil {
		c.inject = func(m *sim.Machine) {
			for _, x := range f.inject(n) {
				m.Inject(x)
			}
		}
	}
	return c
}

// verdict on an outcome: what is printed, and whether it may be.
func (c one) verdict(o outcome, want [][]int32) (string, bool) {
	for i, text := range o.texts {
		// What was given out is right, as far as it goes.
		if !slices.Equal(text, want[i][:min(len(text), len(want[i]))]) {
			return "WRONG TOKENS", false
		}
	}
	if o.took > caseTimeout {
		return "HANGS", false
	}
	switch {
	case o.err != nil && named(o.err):
		return "error: " + short(o.err), c.hopeless
	case o.err != nil:
		return "error without a name: " + o.err.Error(), false
	}
	for i, text := range o.texts {
		if len(text) != len(want[i]) {
			return "TEXT CUT SHORT", false
		}
	}
	return "same text" + how(o), true
}

// named errors are those that callers act upon.
func named(err error) bool {
	var w *engine.WeightsError
	return errors.Is(err, engine.ErrFault) || errors.Is(err, device.ErrOutOfMemory) || errors.Is(err, device.ErrDeviceLost) || errors.As(err, &w)
}

func short(err error) string {
	s := err.Error()
	if len(s) > 90 {
		s = s[:90] + "…"
	}
	return s
}

// how it came to the right text.
func how(o outcome) string {
	var s []string
	direct, refused := 0, 0
	for _, l := range o.links {
		if l.Bytes[transfer.PeerDirect] > 0 {
			direct++
		}
		switch l.Finding.Verdict {
		case transfer.Healthy, transfer.NotProbed:
		default:
			refused++
		}
	}
	if refused > 0 {
		s = append(s, fmt.Sprintf("%d links refused by the probe", refused))
	}
	if direct > 0 {
		s = append(s, fmt.Sprintf("%d links direct", direct))
	}
	if o.stats.Replays > 0 {
		s = append(s, fmt.Sprintf("%d steps replayed", o.stats.Replays))
	}
	if o.stats.ScrubFaults > 0 {
		s = append(s, "weights loaded again")
	}
	for _, n := range o.notes {
		if !slices.Contains(s, n) {
			s = append(s, n)
		}
	}
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, ", ") + ")"
}

// TestMatrix: whatever is wrong, no wrong token.
func TestMatrix(t *testing.T) {
	needSim(t)
	if raceEnabled {
		t.Skip("interpreted kernels take too long under the race detector, which runs over them elsewhere")
	}
	warmUp(t)
	var rows []string
	began := time.Now()
	list := cells(t)
	for _, c := range list {
		o := run(t, c.setup)
		text, ok := c.verdict(o, truth(t, c.setup))
		if !ok {
			t.Errorf("%s, %s, %s: %s%s", c.machine, c.fault, c.load, text, how(o))
		}
		rows = append(rows, strings.Join([]string{c.machine, c.fault, c.load, text}, "\t"))
		if testing.Verbose() {
			t.Logf("%s, %s, %s: %s [%v]", c.machine, c.fault, c.load, text, o.took.Round(time.Millisecond))
		}
	}
	t.Logf("%d combinations in %v", len(list), time.Since(began).Round(time.Second))
	if *full && len(list) < 300 {
		t.Errorf("only %d combinations", len(list))
	}
	if *table != "" {
		if err := writeTable(*table, rows); err != nil {
			t.Fatal(err)
		}
	}
}

func writeTable(name string, rows []string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(f, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MACHINE\tFAULT\tLOAD\tOUTCOME")
	for _, r := range rows {
		fmt.Fprintln(w, r)
	}
	return errors.Join(w.Flush(), f.Close())
}

// TestBlindMatrix is the proof that the matrix can fail: without probe and
// verification, silent faults give wrong tokens.
func TestBlindMatrix(t *testing.T) {
	needSim(t)
	if raceEnabled {
		t.Skip("interpreted kernels take too long under the race detector, which runs over them elsewhere")
	}
	warmUp(t)
	for _, f := range all {
		if !f.silent {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			for i := range 12 * len(loads) { // a single bit may strike where it is nothing to the text
				c := cell(topology(t, "2x4090-patched-chipset"), "", f, loads[i%len(loads)], false)
				c.probe, c.verify, c.scrub, c.seed = false, transfer.VerifyOff, false, uint64(i)
				if text, _ := c.verdict(run(t, c.setup), truth(t, c.setup)); text == "WRONG TOKENS" {
					return
				}
			}
			t.Error("no wrong token: the matrix would not notice this fault")
		})
	}
}
