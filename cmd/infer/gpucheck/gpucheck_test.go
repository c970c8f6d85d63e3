package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"infer/models"
	"infer/runtime/kernels/cuda"
	"infer/runtime/loader"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

func TestRunOnSimulatedMachine(t *testing.T) {
	var parts []string
	r, err := Run(context.Background(), Options{Version: "v", Simulate: "1xRTX-4090", Progress: func(p string) { parts = append(parts, p) }})
	if errors.Is(err, cuda.ErrNoDriver) {
		t.Skipf("this build has no CUDA: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 {
		t.Errorf("faults: %s", strings.Join(r.Faults, "\n"))
	}
	if len(r.Devices) != 1 || !r.Devices[0].Simulated || r.Devices[0].Capability != "8.9" || r.Device != "cuda:0" {
		t.Errorf("devices: %+v", r.Devices)
	}
	if r.Suite == nil || r.Suite.Passed != 3 || len(r.Suite.Failed) != 0 || r.Suite.Output != "" {
		t.Errorf("suite: %+v", r.Suite)
	}
	names := map[string]bool{}
	for _, k := range r.Kernels {
		name, _, _ := strings.Cut(k.Name, " ")
		names[name+" "+k.Precision] = true
		if k.Bytes <= 0 || k.US <= 0 || k.GBps <= 0 || k.OfCopy <= 0 {
			t.Errorf("not measured: %+v", k)
		}
	}
	for _, want := range []string{"copy bf16", "rmsnorm bf16", "rmsnorm auto", "gate bf16", "argmax auto", "digest bf16", "embed, bf16", "rotary auto", "fill bf16", "compare auto", "matmul bf16", "matmul auto", "attention, bf16"} {
		if !names[want] {
			t.Errorf("%s was not measured; there are %v", want, names)
		}
	}
	var decoded []string
	for _, d := range r.Decode {
		graphs := "launches"
		if d.Graphs {
			graphs = "graphs"
		}
		decoded = append(decoded, d.Precision+" "+graphs)
		if d.Prefill <= 0 || d.WeightBytes <= 0 || len(d.Batches) != 2 || d.Batches[1].Tokens <= 0 || d.Batches[1].OfCopy <= 0 {
			t.Errorf("not measured: %+v", d)
		}
	}
	if want := []string{"bf16 graphs", "bf16 launches", "auto graphs"}; !slices.Equal(decoded, want) {
		t.Errorf("decoded %v, want %v", decoded, want)
	}
	if len(parts) != 6 {
		t.Errorf("parts: %v", parts)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err) // an infinite rate, for one
	}
	for _, key := range []string{`"schema":"gpu-selftest/1"`, `"faults":[]`, `"copy_gbps":`, `"uuid":"GPU-`, `"links":[]`} {
		if !strings.Contains(string(text), key) {
			t.Errorf("no %s in %.300s…", key, text)
		}
	}
}

func TestRunOfAbsentDevice(t *testing.T) {
	_, err := Run(context.Background(), Options{Simulate: "1xRTX-4090", Device: 1})
	if errors.Is(err, cuda.ErrNoDriver) {
		t.Skipf("this build has no CUDA: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "no cuda:1: this machine has 1 GPUs") {
		t.Error(err)
	}
}

func TestReadSuite(t *testing.T) {
	s := read(`=== RUN   Suite
=== RUN   Suite/MatMul
--- FAIL: Suite (0.10s)
    --- FAIL: Suite/MatMul (0.06s)
        --- PASS: Suite/MatMul/M=1 (0.00s)
        --- FAIL: Suite/MatMul/M=2 (0.00s)
            matmul.go:1: 3 of 4 elements are off
    --- PASS: Suite/Digest (0.00s)
        --- PASS: Suite/Digest/1 (0.00s)
    --- PASS: Suite/Argmax (0.00s)
FAIL
`)
	if s.Passed != 2 || !slices.Equal(s.Failed, []string{"MatMul", "MatMul/M=2"}) || !strings.Contains(s.Output, "elements are off") {
		t.Errorf("%+v", s)
	}
	if s := read("panic: no driver"); s.Passed != 0 || s.Output != "panic: no driver" {
		t.Errorf("what a process says that ran no test is lost: %+v", s)
	}
}

// A model folder made of noise is read as any other, in whatever pieces.
func TestRandomFolder(t *testing.T) {
	f, err := newFolder(shapeSmall.json())
	if err != nil {
		t.Fatal(err)
	}
	ck, err := loader.OpenFS(f, "random")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := models.Open(ck); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open(loader.SingleName)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(file)
	if err != nil || int64(len(whole)) != f.size {
		t.Fatal(len(whole), f.size, err)
	}
	at := file.(io.ReaderAt)
	for _, r := range [][2]int64{{0, 10}, {int64(len(f.header)) - 3, 9}, {f.size - 5, 5}, {1000, 4097}} {
		p := make([]byte, r[1])
		if _, err := at.ReadAt(p, r[0]); err != nil || !bytes.Equal(p, whole[r[0]:r[0]+r[1]]) {
			t.Errorf("%d bytes at %d differ: %v", r[1], r[0], err)
		}
	}
	if n, err := at.ReadAt(make([]byte, 10), f.size-4); n != 4 || !errors.Is(err, io.EOF) {
		t.Error(n, err)
	}
	// Noise longer than its block goes round.
	block := noise()
	long := make([]byte, len(block)+100)
	readNoise(long, 50)
	if !bytes.Equal(long[len(block):], block[50:150]) {
		t.Error("the noise does not go round")
	}
}

func TestShapesAreTheModelsTheyAreNamedAfter(t *testing.T) {
	for _, c := range []struct {
		s    shape
		want int64 // parameters, as their makers count them
	}{{shape1B, 1_235_814_400}, {shape8B, 8_030_261_248}} {
		m, err := models.FromConfig(&loader.Checkpoint{Config: c.s.json()})
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, t := range m.Tensors() {
			p := int64(1)
			for _, d := range t.Shape {
				p *= int64(d)
			}
			n += p
		}
		if n != c.want {
			t.Errorf("%s has %d parameters, want %d", c.s.name, n, c.want)
		}
	}
}
