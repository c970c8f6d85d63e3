package sim

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPresets(t *testing.T) {
	for name, want := range map[string]struct {
		devices      int
		name, kind   string
		access       bool
		capabilities string // of the first and last
	}{
		"2xRTX-5090":            {2, "NVIDIA GeForce RTX 5090", "PHB", false, "12.0 12.0"},
		"8xH100-SXM":            {8, "NVIDIA H100 80GB HBM3", "NV18", true, "9.0 9.0"},
		"2xRTX-4090+1xRTX-3060": {3, "NVIDIA GeForce RTX 4090", "PHB", false, "8.9 8.6"},
		"2x RTX 4090, rtx3060":  {3, "NVIDIA GeForce RTX 4090", "PHB", false, "8.9 8.6"},
		"unknown-arch":          {1, "NVIDIA Future GPU", "", false, "13.0 13.0"},
		"4xunknown-arch":        {4, "NVIDIA Future GPU", "PHB", true, "13.0 13.0"},
		"2xA100-SXM":            {2, "NVIDIA A100-SXM4-80GB", "NV12", true, "8.0 8.0"},
		"2xB200":                {2, "NVIDIA B200", "NV18", true, "10.0 10.0"},
		"2xGTX-1080-Ti":         {2, "NVIDIA GeForce GTX 1080 Ti", "PHB", true, "6.1 6.1"},
		"2xRTX-A6000":           {2, "NVIDIA RTX A6000", "PHB", true, "8.6 8.6"},
		"2x5090":                {2, "NVIDIA GeForce RTX 5090", "PHB", false, "12.0 12.0"},
		"L4":                    {1, "NVIDIA L4", "", false, "8.9 8.9"},
		"H100-NVL":              {1, "NVIDIA H100 NVL", "", false, "9.0 9.0"},
	} {
		s, err := Preset(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		last := s.Devices[len(s.Devices)-1]
		if len(s.Devices) != want.devices || s.Devices[0].Name != want.name || s.Devices[0].Capability+" "+last.Capability != want.capabilities {
			t.Errorf("%s: %+v", name, s.Devices)
		}
		if len(s.Links) > 0 && (s.Links[0].Kind != want.kind || s.Links[0].CanAccess != want.access) {
			t.Errorf("%s: %+v", name, s.Links[0])
		}
		// A preset is a file as good as any.
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Every GPU of the table can be had.
	for _, p := range products() {
		for _, name := range []string{p.name, "2x" + strings.ReplaceAll(p.name, " ", "-")} {
			if s, err := Preset(name); err != nil || s.Devices[0].Name != p.name {
				t.Errorf("%s: %v, %v", name, s.Devices, err)
			}
		}
	}
	if n := len(products()); n != 77 {
		t.Errorf("%d products", n)
	}
	for name, want := range map[string]string{
		"2xRTX-9999": "no GPU is called", "2x4070": "", "2xA100-PCIE": "", "": "no GPU named", "0xRTX-4090": "1 to 64", "65xRTX-4090": "1 to 64",
		"2xRTX-5090+": "no GPU named", ",RTX-5090": "no GPU named", "L4++L4": "no GPU named", "60xL4+5xL4": "1 to 64", "2xRTX-PRO": "RTX-PRO-4000-Blackwell",
	} {
		if _, err := Preset(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTopologyFiles(t *testing.T) {
	folders := []string{"testdata"}
	if more := os.Getenv("INFER_TOPOLOGIES"); more != "" {
		folders = append(folders, more)
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, f := range files {
			s, err := Read(f)
			if err != nil {
				t.Error(err)
				continue
			}
			m, err := New(s, Options{})
			if err != nil {
				t.Error(err)
				continue
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The fault words of a file are in force from the start.
func TestTopologyFaults(t *testing.T) {
	for file, right := range map[string]func(b *bench, src, dst uint64) bool{
		"2x3090-patched-x4-wrong-data": func(b *bench, src, dst uint64) bool { // stale
			b.ok(b.Device(0).Copy(dst, src, 256, 0))
			return bytes.Equal(b.download(1, dst, 256), words(64, 2)) && bytes.Equal(b.download(0, src, 256), words(64, 1))
		},
		"2x5090-patched-hang": func(b *bench, src, dst uint64) bool { // driver-lies
			b.ok(b.Device(0).CopyNow(dst, src, 256))
			return bytes.Equal(b.download(1, dst, 256), words(64, 2))
		},
		"4xa10g-aws-g5": func(b *bench, src, dst uint64) bool { // slow, by its own figures
			at := b.Time()
			b.ok(b.Device(0).CopyNow(dst, src, 256))
			took := (b.Time() - at).Seconds()
			return bytes.Equal(b.download(1, dst, 256), words(64, 1)) && took > 0.049 && took < 0.05
		},
	} {
		s, err := Read(filepath.Join("testdata", file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		b := machineOf(t, s, Options{})
		b.ok(b.Device(0).EnablePeer(1))
		if src, dst := b.upload(0, words(64, 1)), b.upload(1, words(64, 2)); !right(b, src, dst) {
			t.Errorf("%s: not what its fault does", file)
		}
	}
}

func TestBadTopologies(t *testing.T) {
	good, err := os.ReadFile("testdata/2x5090-patched-hang.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{`"topology/1"`, `"topology/2"`, "schema"},
		{`"12.0", "memory_bytes": 34190917632, "memory_bandwidth_gbps": 1790.0, "pcie_gen": 5, "pcie_width": 8, "numa_node": 0, "bar1_bytes": 34359738368},`, `"12", "memory_bytes": 34190917632},`, "devices[0].compute_capability"},
		{`"memory_bytes": 34190917632`, `"memory_bytes": -1`, "devices[0].memory_bytes"},
		{`"memory_bytes": 34190917632`, `"memory_bytes": "32 GiB"`, "memory_bytes"},
		{`"pcie_gen": 5`, `"pcie_gen": 50`, "devices[0].pcie_gen"},
		{`"index": 1`, `"index": 0`, "index 1"},
		{`-000900000001`, `-000900000000`, "devices[1].uuid"},
		{`GPU-00000000-0000-4000-8000-000900000001`, `GPU-zero`, "devices[1].uuid"},
		{`"from": 0, "to": 1`, `"from": 0, "to": 2`, "links[0]"},
		{`"from": 0, "to": 1`, `"from": 0, "to": 0`, "links[0]"},
		{`"from": 0, "to": 1`, `"from": 1, "to": 0`, "links[1] (1 to 0): a second entry"},
		{`"kind": "PHB"`, `"kind": "PCI"`, "links[0] (0 to 1).kind"},
		{`"nvml_p2p_status": "OK"`, `"nvml_p2p_status": "YES"`, "nvml_p2p_status"},
		{`"staged_gbps": 24.0`, `"staged_gbps": 0`, "staged_gbps"},
		{`"fault": "driver-lies"`, `"fault": "driver"`, "links[0] (0 to 1).fault"},
		{`"fault": "driver-lies"`, `"fualt": "zeros"`, "fault is meant"},
		{`"links": [`, `"faults": [{"kind": "zeros", "evry": 2}], "links": [`, "evry"},
		{`"links": [`, `"faults": [{"kind": "zeros", "to": 7}], "links": [`, "faults[0]: to"},
		{`"links": [`, `"links": [], "linkz": [`, "links is meant"},
		{`"devices": [`, `"devices": [], "others": [`, "devices: none"},
		{`"compute_capability": "12.0"`, `"compute_capability": "999999999999.9"`, "devices[0].compute_capability"},
		{`"devices": [`, `"driver": {"api": -1}, "devices": [`, "driver.api"},
		{`{`, `[`, ""},
	} {
		bad := strings.Replace(string(good), c[0], c[1], 1)
		if bad == string(good) {
			t.Fatalf("%s is not in the file", c[0])
		}
		if _, err := Decode([]byte(bad)); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v", c[1], err)
		}
	}
	if _, err := Decode([]byte("[]")); err == nil || err.Error() != "one object is wanted, not: array" {
		t.Error(err)
	}
	if _, err := Read("testdata/none.json"); err == nil {
		t.Error("a file that is not there was read")
	}
	// What the schema does not know is left aside.
	if _, err := Decode(bytes.Replace(good, []byte(`"index": 0,`), []byte(`"index": 0, "display": true,`), 1)); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile("testdata/1xgb10-unified.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema": "topology/1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		m, err := New(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}
