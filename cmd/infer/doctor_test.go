//go:build cuda && cgo && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// machine writes a topology of two RTX 3090 whose links have a fault, and more
// faults.
func machine(t *testing.T, fault string, more ...string) string {
	t.Helper()
	var devices, links []string
	for i := range 2 {
		devices = append(devices, fmt.Sprintf(`{"index": %d, "uuid": "GPU-00000000-0000-4000-8000-0000000000%02x", "name": "NVIDIA GeForce RTX 3090",
			"compute_capability": "8.6", "memory_bytes": 25769803776, "memory_bandwidth_gbps": 936.2, "pcie_gen": 4, "pcie_width": 16, "numa_node": 0, "bar1_bytes": null}`, i, len(fault)*16+i))
		links = append(links, fmt.Sprintf(`{"from": %d, "to": %d, "kind": "PIX", "can_access_peer": true, "nvml_p2p_status": "OK", "peer_gbps": 26, "staged_gbps": 12,
			"peer_latency_us": null, "staged_latency_us": null, "fault": "%s"}`, i, 1-i, fault))
	}
	file := filepath.Join(t.TempDir(), "machine.json")
	text := fmt.Sprintf(`{"schema": "topology/1", "id": "m", "driver": {"version": "580.65.06"}, "devices": [%s], "links": [%s], "faults": [%s]}`,
		strings.Join(devices, ","), strings.Join(links, ","), strings.Join(more, ","))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A machine that is well, and machines that are not, for people and programs.
func TestDoctor(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	raw, err := os.ReadFile("../../docs/doctor.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("doctor.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("doctor.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		machine string
		code    int
		says    []string
	}{
		{machine(t, "none"), 0, []string{"PIX ok 2", "all well", "event-ordered"}},
		{machine(t, "zeros"), 1, []string{"PIX CORRUPT", "cuda:0 to cuda:1: the probe says corrupt", "hint:"}},
		{machine(t, "slow"), 0, []string{"PIX slow", "host staging has", "hint:"}},
		{"unknown-arch", 0, []string{"13.0", "unknown", "synchronous", "is not in the table"}},
		{"2xRTX-5090", 0, []string{"host", "no peer copies"}},
	} {
		code, out, errOut := call(t, "doctor", "--simulate", c.machine)
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: %q is not in\n%s", c.machine, s, out)
			}
		}
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.machine, code, c.code, errOut)
		}
		code, out, _ = call(t, "doctor", "--simulate", c.machine, "--json")
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil || code != c.code {
			t.Errorf("%s: exit %d, %v", c.machine, code, err)
		}
		var d diagnosis
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Safe != (c.code == 0) {
			t.Errorf("%s: safe %t, %v", c.machine, d.Safe, err)
		}
	}
	t.Run("forbidden", func(t *testing.T) {
		t.Setenv("NCCL_P2P_DISABLE", "1")
		if code, out, _ := call(t, "doctor", "--simulate", machine(t, "zeros")); code != 0 || !strings.Contains(out, "not examined") || strings.Contains(out, "PIX ok") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
	for _, args := range []string{"--archs --forget", "--forget --soak 1s", "--archs --simulate RTX-4090", "--soak 9999h", "--soak -1s", "--forget --json"} {
		if code, out, errOut := call(t, append([]string{"doctor"}, strings.Fields(args)...)...); code != exitUsage || out != "" {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errOut)
		}
	}
	if code, out, _ := call(t, "doctor", "--archs"); code != 0 || !strings.Contains(out, "12.0") || !strings.Contains(out, "Hopper") {
		t.Errorf("--archs: exit %d\n%s", code, out)
	}
}

// serves runs two GPUs' worth of the model, and gives the text with what was
// said about links.
func serves(t *testing.T, machine string) (said string) {
	t.Helper()
	args := []string{"--temperature", "0", "--max-tokens", "8", "Once upon a time"}
	want := infer(t, append([]string{"run"}, args...)...)
	code, out, errOut := call(t, append([]string{"run", "--simulate", machine, "--device-map", "cuda:0=0-2,cuda:1=3-"}, args...)...)
	if code != 0 || out != want {
		t.Errorf("exit %d, %q, want %q\n%s", code, out, want, errOut)
	}
	return errOut
}

// A probe's process that is killed, a link that hangs, and what an earlier run
// left behind: the model is served by way of the host, and one line for the
// link says why.
func TestProbeTrouble(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for links that hang")
	}
	once := func(said, link, why string) {
		t.Helper()
		lines := 0
		for line := range strings.Lines(said) {
			if strings.Contains(line, link) && strings.Contains(line, why) && strings.Contains(line, "host_staged") {
				lines++
			}
		}
		if lines != 1 {
			t.Errorf("%d lines about %s with %q, want 1:\n%s", lines, link, why, said)
		}
	}
	t.Run("hang", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		once(serves(t, machine(t, "hang")), `"from":"cuda:0","to":"cuda:1"`, "hung")
	})
	t.Run("kill", func(t *testing.T) {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		file := machine(t, "hang") // so that there is time
		killed := make(chan error, 1)
		go func() { killed <- killProbe(cache) }()
		said := serves(t, file)
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		once(said, `"from":"cuda:0","to":"cuda:1"`, "killed")
		// It is remembered, and forgotten on demand.
		once(serves(t, file), `"from":"cuda:0","to":"cuda:1"`, "infer doctor --forget")
		if code, out, _ := call(t, "doctor", "--forget"); code != 0 || !strings.Contains(out, "forgot") {
			t.Errorf("--forget: exit %d, %s", code, out)
		}
	})
	t.Run("called off", func(t *testing.T) { // which says nothing of the link
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		file := machine(t, "none")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = probing(cache)
			cancel()
		}()
		var out, errOut bytes.Buffer
		if code := execute(ctx, []string{"doctor", "--simulate", file, "--soak", "1m"}, strings.NewReader(""), &out, &errOut); code != exitInterrupted {
			t.Errorf("exit %d: %s%s", code, &out, &errOut)
		}
		if code, out, errOut := call(t, "doctor", "--simulate", file); code != 0 || strings.Count(out, "PIX ok") != 2 {
			t.Errorf("afterwards: exit %d\n%s%s", code, out, errOut)
		}
	})
	t.Run("marker", func(t *testing.T) {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		dir := filepath.Join(cache, "infer", "links")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		marker := `{"from": "GPU-00000000-0000-4000-8000-000000000040", "to": "GPU-00000000-0000-4000-8000-000000000041", "pid": 1, "boot_id": "before"}`
		if err := os.WriteFile(filepath.Join(dir, "probing-1.json"), []byte(marker), 0o600); err != nil {
			t.Fatal(err)
		}
		once(serves(t, machine(t, "none")), `"from":"cuda:0","to":"cuda:1"`, "the machine went down while it was probed")
	})
}

// killProbe waits for a probe's marker and ends the process that wrote it.
func killProbe(cache string) error {
	pid, err := probing(cache)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// probing waits for a probe's marker, and gives the process that wrote it.
func probing(cache string) (pid int, err error) {
	for range 3000 {
		list, err := filepath.Glob(filepath.Join(cache, "infer", "links", "probing-*.json"))
		if err != nil {
			return 0, err
		}
		if len(list) > 0 {
			return strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(list[0]), "probing-"), ".json"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("no probe within 30 s")
}

// Weights of experts are verified where they are, and it is that GPU which is
// left out.
func TestFaultyExperts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	args := []string{"run", "../../models/modelstest/testdata/qwen3_moe", "--ids", "1,2,3,4,5", "--temperature", "0", "--max-tokens", "4", "--json"}
	var want, got runOutput
	decode(t, infer(t, args...), &want)
	file := machine(t, "none", `{"kind": "bitflip", "from": -1, "to": 1, "paths": ["upload"], "min_bytes": 20000, "times": 1}`)
	code, out, said := call(t, append(args, "--simulate", file, "--no-peer", "--device-map", "cuda:0=0-,experts=cuda:1")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	decode(t, out, &got)
	if !slices.Equal(got.IDs, want.IDs) || !strings.Contains(said, `"device":"cuda:1"`) || !strings.Contains(said, "on cuda:1 changed") {
		t.Errorf("ids %v, want %v\n%s", got.IDs, want.IDs, said)
	}
}

// A GPU that is lost, and GPUs that do not take the weights: the text is the same, and it is said what happened.
func TestFaultsInProduction(t *testing.T) {
	for fault, says := range map[string]string{
		`{"kind": "lost", "device": 1, "after": 40}`:                                        "going on without these devices",
		`{"kind": "oom", "device": 1, "after": 6}`:                                          "cannot be loaded there",
		`{"kind": "bitflip", "from": -1, "to": 1, "paths": ["upload"], "min_bytes": 60000}`: "cannot be loaded there",
		`{"kind": "capability", "device": 1, "capability": "7.3"}`:                          "the driver refuses the kernels", // older than they are made for
		`{"kind": "capability", "capability": "7.3"}`:                                       "update the driver",              // none is left
		// What the flip meets depends on the order of copies: a step's result, or
		// the check of its batch.
		`{"kind": "bitflip", "from": 1, "to": -1, "after": 4, "times": 1}`: "is computed again",
	} {
		if testing.Short() && !strings.Contains(fault, "lost") {
			continue // for the race detector one that reloads is enough
		}
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		if said := serves(t, machine(t, "none", fault)); !strings.Contains(said, says) {
			t.Errorf("%s: %q is not in:\n%s", fault, says, said)
		}
	}
}
