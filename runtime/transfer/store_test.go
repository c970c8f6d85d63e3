package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"infer/runtime/arch"
	"infer/runtime/device"
)

func hostFS(boot string) fstest.MapFS {
	return fstest.MapFS{
		"proc/cmdline":                     {Data: []byte("root=/dev/sda1 iommu=pt\n")},
		"proc/sys/kernel/random/boot_id":   {Data: []byte(boot + "\n")},
		"sys/class/dmi/id/bios_version":    {Data: []byte("F7\n")},
		"sys/class/dmi/id/bios_extra_info": {Data: []byte("x\n")},
	}
}

func gpuInfos(n int) []device.Info {
	var all []device.Info
	for i := range n {
		all = append(all, device.Info{ID: id(i), GPU: &device.GPU{
			Capability: arch.Of(8, 6), UUID: "GPU-" + string(rune('a'+i)), PCI: "0000:0" + string(rune('1'+i)) + ":00.0", DriverVersion: "580.65",
		}})
	}
	return all
}

// Each part of the key matters, and the order of devices does not.
func TestKey(t *testing.T) {
	base := KeyOf(gpuInfos(2), hostFS("boot-1"), "")
	if base.BIOS != "F7" || base.BootID != "boot-1" || base.Driver != "580.65" || !strings.Contains(base.Cmdline, "iommu=pt") {
		t.Fatalf("%+v", base)
	}
	swapped := gpuInfos(2)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	if KeyOf(swapped, hostFS("boot-1"), "").String() != base.String() {
		t.Error("the order of devices changes the key")
	}
	seen := map[string]string{base.String(): "the base"}
	for name, k := range map[string]func() Key{
		"boot":    func() Key { return KeyOf(gpuInfos(2), hostFS("boot-2"), "") },
		"GPUs":    func() Key { return KeyOf(gpuInfos(3), hostFS("boot-1"), "") },
		"machine": func() Key { return KeyOf(gpuInfos(2), hostFS("boot-1"), "2xRTX") },
		"PCI":     func() Key { i := gpuInfos(2); i[1].GPU.PCI = "0000:09:00.0"; return KeyOf(i, hostFS("boot-1"), "") },
		"driver": func() Key {
			i := gpuInfos(2)
			i[0].GPU.DriverVersion, i[1].GPU.DriverVersion = "590", "590"
			return KeyOf(i, hostFS("boot-1"), "")
		},
		"cmdline": func() Key {
			fs := hostFS("boot-1")
			fs["proc/cmdline"].Data = []byte("iommu=off")
			return KeyOf(gpuInfos(2), fs, "")
		},
		"BIOS": func() Key {
			fs := hostFS("boot-1")
			fs["sys/class/dmi/id/bios_version"].Data = []byte("F8")
			return KeyOf(gpuInfos(2), fs, "")
		},
		"nothing to read": func() Key { return KeyOf(gpuInfos(2), fstest.MapFS{}, "") },
	} {
		h := k().String()
		if prev, dup := seen[h]; dup {
			t.Errorf("%s: the key of %s", name, prev)
		}
		seen[h] = name
	}
}

// probes is a Spawn that answers as told, link by link.
type probes struct {
	calls int
	asked [][]Pair
	do    func(ctx context.Context, p Pair) (*Measurement, error) // error: the process ends there
}

func (s *probes) spawn(ctx context.Context, pairs []Pair, emit func([]byte)) error {
	s.calls++
	s.asked = append(s.asked, pairs)
	for _, p := range pairs {
		line, _ := json.Marshal(Line{Begin: &IDPair{p.From.Index, p.To.Index}})
		emit(line)
		m, err := s.do(ctx, p)
		if err != nil {
			return err
		}
		line, _ = json.Marshal(Line{Result: m})
		emit(line)
	}
	return nil
}

func allLinks(n int) []device.Link {
	var all []device.Link
	for i := range n {
		for j := range n {
			if i != j {
				all = append(all, device.Link{From: id(i), To: id(j), PeerAccess: true, P2PStatus: "OK"})
			}
		}
	}
	return all
}

func verdicts(s Survey) map[Pair]Verdict {
	m := map[Pair]Verdict{}
	for _, f := range s.Facts {
		m[f.Pair] = f.Finding.Verdict
	}
	return m
}

// Every directed pair is probed once, kept under the key, and probed again when
// anything changed.
func TestSurveyAsksEveryPair(t *testing.T) {
	dir := t.TempDir()
	survey := func(boot string, n int) (*probes, Survey) {
		store, err := OpenStore(dir, KeyOf(gpuInfos(n), hostFS(boot), ""))
		if err != nil {
			t.Fatal(err)
		}
		p := &probes{do: func(_ context.Context, p Pair) (*Measurement, error) {
			m := &Measurement{Copies: 1}
			if p == (Pair{id(0), id(2)}) {
				m.Corruption = &Corruption{Kind: Zeros}
			}
			return m, nil
		}}
		v := Surveyor{Infos: gpuInfos(n), Links: allLinks(n), Store: store, Spawn: p.spawn}
		s := v.Survey(t.Context())
		if err := errors.Join(s.Problems...); err != nil {
			t.Error(err)
		}
		return p, s
	}
	check := func(s Survey, n int) {
		t.Helper()
		vs := verdicts(s)
		for i := range n {
			for j := range n {
				want := Healthy
				if i == 0 && j == 2 {
					want = Corrupt
				}
				if i != j && vs[Pair{id(i), id(j)}] != want {
					t.Errorf("%d to %d: %s", i, j, vs[Pair{id(i), id(j)}])
				}
			}
		}
	}
	p, s := survey("boot-1", 4)
	check(s, 4)
	if p.calls != 1 || len(s.Probed) != 12 {
		t.Errorf("%d calls, %d pairs", p.calls, len(s.Probed))
	}
	p, s = survey("boot-1", 4)
	check(s, 4)
	if p.calls != 0 {
		t.Error("probed again though nothing changed")
	}
	p, s = survey("boot-2", 4)
	check(s, 4)
	if p.calls != 1 {
		t.Error("not probed again after a boot")
	}
	p, s = survey("boot-2", 3)
	check(s, 3)
	if p.calls != 1 {
		t.Error("not probed again with other GPUs")
	}
}

// A link whose probe ends the process costs that link only, is not tried
// again, not even after a boot, and is forgotten on demand.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	bad := Pair{id(1), id(0)}
	survey := func(boot string) (*probes, *Store, Survey) {
		store, err := OpenStore(dir, KeyOf(gpuInfos(3), hostFS(boot), ""))
		if err != nil {
			t.Fatal(err)
		}
		p := &probes{do: func(_ context.Context, p Pair) (*Measurement, error) {
			if p == bad {
				return nil, errors.New("signal: killed")
			}
			return &Measurement{Copies: 1}, nil
		}}
		v := Surveyor{Infos: gpuInfos(3), Links: allLinks(3), Store: store, Spawn: p.spawn}
		return p, store, v.Survey(t.Context())
	}
	check := func(s Survey) {
		t.Helper()
		for _, f := range s.Facts {
			if f.Pair == bad {
				if d := Decide(f); d.Route != HostStaged || f.Finding.Verdict != Unavailable || !strings.Contains(d.Why(), "--forget") || !strings.Contains(d.Why(), "killed") {
					t.Errorf("%v: %s", f.Pair, d.Why())
				}
			} else if f.Finding.Verdict != Healthy {
				t.Errorf("%v: %s", f.Pair, f.Finding)
			}
		}
	}
	p, _, s := survey("boot-1")
	check(s)
	if p.calls != 2 {
		t.Errorf("%d calls, want another for the links behind the crash", p.calls)
	}
	for range 2 {
		p, store, s := survey("boot-2")
		check(s)
		for _, pairs := range p.asked {
			for _, at := range pairs {
				if at == bad {
					t.Fatal("the link was tried again")
				}
			}
		}
		if n, err := store.Forget(); err != nil || n < 2 {
			t.Errorf("forgot %d files, %v", n, err)
		}
		p, _, _ = survey("boot-2")
		if len(p.asked[0]) != 6 {
			t.Errorf("after forgetting %v is asked", p.asked[0])
		}
	}
}

// What a machine that went down leaves behind is a crash; what a process that
// still runs has noted is not.
func TestMarker(t *testing.T) {
	dir := t.TempDir()
	open := func(boot string) *Store {
		s, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS(boot), ""))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("boot-1")
	unmark, err := s.mark(ends{"GPU-a", "GPU-b"})
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := open("boot-1").crashes(); len(c) != 0 {
		t.Errorf("a running probe counts as a crash: %v", c)
	}
	if err := unmark(); err != nil {
		t.Fatal(err)
	}
	if c, _ := open("boot-2").crashes(); len(c) != 0 {
		t.Errorf("a probe that ended well counts as a crash: %v", c)
	}
	if _, err := s.mark(ends{"GPU-a", "GPU-b"}); err != nil {
		t.Fatal(err)
	}
	c, err := open("boot-2").crashes()
	if err != nil || !strings.Contains(c[ends{"GPU-a", "GPU-b"}], "machine went down") {
		t.Errorf("after a reset: %v, %v", c, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "probing-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Files that a full disk or a reset left broken are said once, keep nothing
// from being remembered, and are gone after Forget.
func TestBrokenFiles(t *testing.T) {
	dir := t.TempDir()
	key := KeyOf(gpuInfos(2), hostFS("b"), "")
	s, err := OpenStore(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"crashes.json", "probing-7.json", key.String() + ".json", ".new-1234"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"from":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenStore(dir, key); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "probing-7.json") || !strings.Contains(err.Error(), "--forget") {
		t.Errorf("a broken marker: %v", err)
	}
	if _, err := OpenStore(dir, key); err != nil {
		t.Errorf("said twice: %v", err)
	}
	if _, _, err := s.load(); !errors.Is(err, errBroken) {
		t.Errorf("broken verdicts: %v", err)
	}
	if _, err := s.crashes(); !errors.Is(err, errBroken) {
		t.Errorf("broken crashes: %v", err)
	}
	at := ends{"GPU-a", "GPU-b"}
	if err := errors.Join(s.crashed(at, "killed"), s.saveFinding(at, Finding{Verdict: Healthy})); err != nil {
		t.Fatal(err)
	}
	if c, err := s.crashes(); err != nil || len(c) != 1 {
		t.Errorf("crashes afterwards: %v, %v", c, err)
	}
	if f, _, err := s.load(); err != nil || f[at].Verdict != Healthy {
		t.Errorf("verdicts afterwards: %v, %v", f, err)
	}
	if n, err := s.Forget(); err != nil || n != 3 {
		t.Errorf("forgot %d files, %v", n, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Processes that find something at the same time do not lose each other's.
func TestTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	const each = 5
	var all sync.WaitGroup
	for i := range 3 {
		s, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS("b"), ""))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for k := range each {
				at := ends{fmt.Sprint(i), fmt.Sprint(k)}
				if err := errors.Join(s.saveFinding(at, Finding{Verdict: Healthy}), s.crashed(at, "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS("b"), ""))
	if err != nil {
		t.Fatal(err)
	}
	found, _, err1 := s.load()
	crashed, err2 := s.crashes()
	if len(found) != 3*each || len(crashed) != 3*each {
		t.Errorf("%d verdicts and %d crashes of %d are left: %v", len(found), len(crashed), 3*each, errors.Join(err1, err2))
	}
}

// A probe that does not answer is ended at the deadline; what comes behind it
// waits no longer.
func TestProbeHangs(t *testing.T) {
	p := &probes{do: func(ctx context.Context, p Pair) (*Measurement, error) {
		if p == (Pair{id(1), id(2)}) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &Measurement{Copies: 1}, nil
	}}
	v := Surveyor{Infos: gpuInfos(3), Links: allLinks(3), Spawn: p.spawn, Limit: 50 * time.Millisecond}
	began := time.Now()
	s := v.Survey(t.Context())
	if time.Since(began) > 5*time.Second {
		t.Error("no deadline")
	}
	want := map[Pair]Verdict{
		{id(0), id(1)}: Healthy, {id(0), id(2)}: Healthy, {id(1), id(0)}: Healthy, {id(1), id(2)}: Hung,
		{id(2), id(0)}: Inconclusive, {id(2), id(1)}: Inconclusive,
	}
	for p, v := range verdicts(s) {
		if v != want[p] {
			t.Errorf("%v: %s, want %s", p, v, want[p])
		}
	}
}

// A probe that cannot even begin leaves everything to the host.
func TestProbeDoesNotStart(t *testing.T) {
	v := Surveyor{Infos: gpuInfos(2), Links: allLinks(2), Spawn: func(context.Context, []Pair, func([]byte)) error {
		return errors.New("exec: permission denied")
	}}
	for p, f := range verdicts(v.Survey(t.Context())) {
		if f != Inconclusive {
			t.Errorf("%v: %s", p, f)
		}
	}
}

// Called off by the user, or left alone by who asked: the probe takes its marker
// back, which would stand for a crash.
func TestProbeTakesMarkerBack(t *testing.T) {
	dir := t.TempDir()
	store, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS("b"), ""))
	if err != nil {
		t.Fatal(err)
	}
	marked := func() bool {
		list, err := filepath.Glob(filepath.Join(dir, "probing-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list) > 0
	}
	p := Probe{Store: store}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	seen := false
	look := writer(func([]byte) error { seen = seen || marked(); return nil })
	if err := p.Run(over, []Pair{{id(0), id(1)}}, look); !errors.Is(err, context.Canceled) || !seen || marked() {
		t.Errorf("called off: %v, marked while it ran %t, afterwards %t", err, seen, marked())
	}
	gone := errors.New("broken pipe")
	if err := p.Run(t.Context(), []Pair{{id(0), id(1)}}, writer(func([]byte) error { return gone })); !errors.Is(err, gone) || marked() {
		t.Errorf("nobody listens: %v, marked afterwards %t", err, marked())
	}
}

type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) { return len(b), w(b) }

// Called off by the user: nothing is learned, also when the probe was ended
// before it could take its marker back.
func TestProbeCalledOff(t *testing.T) {
	dir := t.TempDir()
	store, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS("b"), ""))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &probes{do: func(ctx context.Context, p Pair) (*Measurement, error) {
		cancel()
		const ended = 1 << 30 // no process has this number
		return nil, errors.Join(ctx.Err(), store.write(store.markerOf(ended), marker{endsOf(gpuInfos(2), p), ended, "b", time.Now()}))
	}}
	v := Surveyor{Infos: gpuInfos(2), Links: allLinks(2), Store: store, Spawn: p.spawn}
	for p, f := range verdicts(v.Survey(ctx)) {
		if f != NotProbed {
			t.Errorf("%v: %s", p, f)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("remembered: %v", left)
	}
}

// Quarantine outlives the process, under the key.
func TestQuarantineIsKept(t *testing.T) {
	dir := t.TempDir()
	open := func(boot string) Survey {
		store, err := OpenStore(dir, KeyOf(gpuInfos(2), hostFS(boot), ""))
		if err != nil {
			t.Fatal(err)
		}
		p := &probes{do: func(context.Context, Pair) (*Measurement, error) { return &Measurement{Copies: 1}, nil }}
		v := Surveyor{Infos: gpuInfos(2), Links: allLinks(2), Store: store, Spawn: p.spawn}
		s := v.Survey(t.Context())
		if boot == "first" {
			if err := store.Quarantine(gpuInfos(2), Pair{id(1), id(0)}, "step 12"); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	open("first")
	for _, f := range open("first2").Facts {
		if f.Quarantined != "" {
			t.Error("kept over a boot, where the probe is asked again")
		}
	}
	for _, f := range open("first").Facts {
		if (f.Quarantined == "step 12") != (f.Pair == Pair{id(1), id(0)}) {
			t.Errorf("%v: %q", f.Pair, f.Quarantined)
		}
	}
}
