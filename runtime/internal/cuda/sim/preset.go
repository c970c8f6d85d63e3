package sim

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Public figures of products: name as NVML prints it, rates dense, NVLink both
// directions together; empty: not known.
//
//go:embed gpus.csv
var productTable string

// product is one row of the table.
type product struct {
	name                  string
	capability            string
	memoryGiB, memoryGBps float64
	fp32, fp16, bf16      float64 // TFLOPS
	pcieGen, pcieWidth    int
	nvlinkGBps            float64
	sms                   int
}

var products = sync.OnceValue(func() []product {
	var out []product
	for i, line := range strings.Split(strings.TrimSpace(productTable), "\n") {
		c := strings.Split(line, ",")
		if i == 0 || len(c) != 12 {
			continue
		}
		num := func(k int) float64 { v, _ := strconv.ParseFloat(c[k], 64); return v }
		out = append(out, product{
			name: c[0], capability: c[1], memoryGiB: num(2), memoryGBps: num(3), fp32: num(4), fp16: num(5), bf16: num(6),
			pcieGen: int(num(8)), pcieWidth: int(num(9)), nvlinkGBps: num(10), sms: int(num(11)),
		})
	}
	return out
})

// UnknownArch is the preset of a GPU newer than every table: compute capability
// 13.0, and a driver that says yes to everything.
const UnknownArch = "unknown-arch"

var unknownProduct = product{
	name: "NVIDIA Future GPU", capability: "13.0", memoryGiB: 48, memoryGBps: 2000, fp32: 120, fp16: 480, bf16: 480,
	pcieGen: 6, pcieWidth: 16, sms: 160,
}

// shortNames are names people use for what NVML calls otherwise.
var shortNames = map[string]string{
	"h100": "NVIDIA H100 80GB HBM3", "h100sxm": "NVIDIA H100 80GB HBM3", "h100sxm5": "NVIDIA H100 80GB HBM3",
	"h200sxm": "NVIDIA H200", "a100": "NVIDIA A100-SXM4-80GB", "a100sxm": "NVIDIA A100-SXM4-80GB", "a100pcie": "NVIDIA A100 80GB PCIe",
	"a10040gb": "NVIDIA A100-SXM4-40GB", "v100": "Tesla V100-SXM2-32GB", "v100sxm": "Tesla V100-SXM2-32GB", "v100pcie": "Tesla V100-PCIE-32GB",
	"rtxpro6000": "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx6000ada": "NVIDIA RTX 6000 Ada Generation",
	"b300": "NVIDIA B300 SXM6 AC", "gh200": "NVIDIA GH200 480GB",
}

// Preset makes a machine by name: like "2xRTX-5090", "8xH100-SXM",
// "2xRTX-4090+1xRTX-3060", "unknown-arch" or "4xunknown-arch". GPUs are joined
// by NVLink where the product is (SXM boards), else they sit behind one host
// bridge each, with the answers the stock driver gives.
func Preset(name string) (Spec, error) {
	s := Spec{Schema: Schema, ID: name, Title: "simulated " + name, Driver: Driver{Version: ref("580.95.05"), KernelModule: "stock, open"}}
	var rows []product
	for part := range strings.SplitSeq(strings.ReplaceAll(name, ",", "+"), "+") {
		count, model := 1, strings.TrimSpace(part)
		if model == "" {
			return s, errors.New("no GPU named in an entry; like 2xRTX-5090, or 2xRTX-5090+1xRTX-3060")
		}
		if n, rest, ok := strings.Cut(model, "x"); ok {
			if v, err := strconv.Atoi(n); err == nil {
				count, model = v, rest
			}
		}
		if count < 1 || count > maxDevices || len(rows)+count > maxDevices {
			return s, fmt.Errorf("%d GPUs; 1 to %d", len(rows)+count, maxDevices)
		}
		p, err := findProduct(model)
		if err != nil {
			return s, err
		}
		for range count {
			rows = append(rows, p)
		}
	}
	for i, p := range rows {
		s.Devices = append(s.Devices, p.device(i))
	}
	for a := range rows {
		for b := range rows {
			if a != b {
				s.Links = append(s.Links, presetLink(rows, a, b))
			}
		}
	}
	return s, s.check()
}

func ref[T any](v T) *T { return &v }

// plain reduces a name to what people agree on: "NVIDIA GeForce RTX 5090" and
// "RTX-5090" are "rtx5090".
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	for _, w := range []string{"nvidia", "geforce", "tesla", "quadro"} {
		name = strings.TrimPrefix(name, w)
	}
	return name
}

func findProduct(model string) (product, error) {
	want := plain(model)
	if want == plain(UnknownArch) {
		return unknownProduct, nil
	}
	if full, ok := shortNames[want]; ok {
		want = plain(full)
	}
	var near []string
	for _, p := range products() {
		have := plain(p.name)
		if have == want || have == "rtx"+want || have == "gtx"+want {
			return p, nil
		}
		if want != "" && strings.Contains(have, want) {
			near = append(near, strings.ReplaceAll(strings.TrimPrefix(p.name, "NVIDIA "), " ", "-"))
		}
	}
	switch len(near) {
	case 0:
		return product{}, fmt.Errorf("no GPU is called %q; names are as nvidia-smi prints them, without NVIDIA and GeForce: RTX-4090, L40S, H100-SXM, A100-PCIE, %s", model, UnknownArch)
	case 1:
		return findProduct(near[0])
	}
	return product{}, fmt.Errorf("no GPU is called %q alone; there are %s", model, strings.Join(near, ", "))
}

func (p product) device(i int) Device {
	d := Device{
		Index: i, Name: p.name, Capability: p.capability,
		UUID: fmt.Sprintf("GPU-00000000-0000-4000-a000-%012x", i),
		// The driver keeps a little of what the box says.
		MemoryBytes: int64(p.memoryGiB*(1<<30)*0.995) &^ (1<<20 - 1), MemoryGBps: p.memoryGBps,
		NUMANode: ref(0), FP32TFLOPS: p.fp32, DenseTFLOPS: max(p.bf16, p.fp16), SMs: p.sms,
	}
	if p.pcieGen > 0 {
		d.PCIeGen, d.PCIeWidth = ref(p.pcieGen), ref(p.pcieWidth)
	} else {
		d.Integrated = !p.nvlinked()
	}
	return d
}

// nvlinked says whether the product's boards are joined by NVLink without a
// bridge that someone must buy.
func (p product) nvlinked() bool {
	if p.nvlinkGBps == 0 {
		return false
	}
	for _, w := range []string{"SXM", "HBM3", "H20", "B200"} { // H20, H200, GB200 too
		if strings.Contains(p.name, w) && !strings.Contains(p.name, "NVL") {
			return true
		}
	}
	return false
}

// presetLink is the link between two products as the stock driver has it
// (which pairs may have peer access: public reports, by class of GPU).
func presetLink(rows []product, a, b int) Link {
	p, q := rows[a], rows[b]
	l := Link{From: a, To: b, Fault: "none", StagedUS: ref(14.0), StagedGBps: ref(0.85 * min(p.pcieGBps(), q.pcieGBps()))}
	if p.name == q.name && p.nvlinked() {
		perLink := 50.0
		if p.nvlinkGBps > 1000 {
			perLink = 100
		}
		l.Kind = "NV" + strconv.Itoa(int(p.nvlinkGBps/perLink))
		l.CanAccess, l.P2PStatus, l.PeerGBps, l.PeerUS = true, ref("OK"), ref(0.83*p.nvlinkGBps/2), ref(2.0)
		return l
	}
	l.Kind = "PHB"
	geforce := strings.Contains(p.name, "GeForce") || strings.Contains(q.name, "GeForce")
	pascal := p.capability == "6.1" && q.capability == "6.1"
	if p.capability != q.capability || geforce && !pascal {
		l.P2PStatus = ref("GNS")
		return l
	}
	l.CanAccess, l.P2PStatus, l.PeerGBps, l.PeerUS = true, ref("OK"), ref(0.8*min(p.pcieGBps(), q.pcieGBps())), ref(2.5)
	return l
}

func (p product) pcieGBps() float64 { return pcieGBps(p.pcieGen, p.pcieWidth) }

// pcieGBps is the raw bandwidth of a slot, one way; 31.5 (gen 4 x16) when it is
// not known.
func pcieGBps(gen, width int) float64 {
	perLane := map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}[gen]
	if perLane == 0 || width == 0 {
		return 31.5
	}
	return perLane * float64(width)
}
