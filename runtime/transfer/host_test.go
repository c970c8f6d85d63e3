package transfer

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infer/runtime/device"
)

func hostWith(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{"sys/kernel/x": {}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestReadHost(t *testing.T) {
	infos := gpuInfos(1)
	const slot = "sys/bus/pci/devices/0000:01:00.0/"
	root := hostWith(map[string]string{
		"proc/cmdline":                   "quiet amd_iommu=on iommu=pt pci=noaer root=/dev/x\n",
		"sys/kernel/iommu_groups/0/type": "DMA-FQ\n",
		slot + "numa_node":               "1\n",
		slot + "current_link_width":      "4\n",
		slot + "max_link_width":          "16\n",
		slot + "current_link_speed":      "16.0 GT/s PCIe\n",
		slot + "aer_dev_correctable":     "RxErr 3\nBadTLP 0\nRollover 2\nTimeout 5\nTOTAL_ERR_COR 10\n",
	})
	root[slot+"iommu_group"] = &fstest.MapFile{Data: []byte("../../../kernel/iommu_groups/17"), Mode: fs.ModeSymlink}
	h := ReadHost(root, infos)
	if h.IOMMU != "translating" || !slices.Equal(h.IOMMUOptions, []string{"amd_iommu=on", "iommu=pt", "pci=noaer"}) {
		t.Errorf("%+v", h)
	}
	if s := h.Slots[0]; s.NUMANode != 1 || s.Width != 4 || s.MaxWidth != 16 || s.Replays != 7 || s.Group != "17" || s.Speed != "16.0 GT/s PCIe" {
		t.Errorf("%+v", s)
	}
	for kind, want := range map[string]string{"DMA": "translating", "identity": "passthrough"} {
		if h := ReadHost(hostWith(map[string]string{"sys/kernel/iommu_groups/0/type": kind}), nil); h.IOMMU != want {
			t.Errorf("%s: %s", kind, h.IOMMU)
		}
	}
	if h := ReadHost(hostWith(nil), nil); h.IOMMU != "off" {
		t.Errorf("no groups: %s", h.IOMMU)
	}
	if h := ReadHost(fstest.MapFS{}, infos); h.IOMMU != "unknown" || h.Slots[0].Width != 0 || h.Slots[0].NUMANode != -1 || h.Slots[0].Replays != -1 {
		t.Errorf("nothing to read: %+v", h)
	}
}

// Each known cause has its hint, and a sound machine has none.
func TestHints(t *testing.T) {
	infos := gpuInfos(2)
	for i := range infos {
		infos[i].TotalBytes = 24 << 30
	}
	fact := func(v Verdict) []LinkFacts {
		return []LinkFacts{{Link: device.Link{PeerAccess: true}, Finding: Finding{Verdict: v}}}
	}
	codes := func(h Host, infos []device.Info, f []LinkFacts) string {
		var all []string
		for _, x := range Hints(h, infos, f) {
			all = append(all, x.Code)
		}
		return strings.Join(all, " ")
	}
	small := gpuInfos(1)
	small[0].TotalBytes, small[0].GPU.BAR1Bytes = 24<<30, 256<<20
	impossible := fact(Inconclusive)
	impossible[0].Finding.Peer.GBps, impossible[0].Finding.Ceiling = 103, 63
	staging := fact(Healthy)
	staging[0].Finding.Staging = "arrived changed"
	for _, c := range []struct {
		name, want string
		h          Host
		infos      []device.Info
		f          []LinkFacts
	}{
		{"well", "", Host{IOMMU: "off"}, infos, fact(Healthy)},
		{"IOMMU", "iommu driver", Host{IOMMU: "translating"}, infos, fact(Corrupt)},
		{"ACS", "acs driver", Host{IOMMU: "passthrough"}, infos, fact(Hung)},
		{"BAR1", "acs bar1 driver", Host{}, small, fact(Corrupt)},
		{"slow", "slow", Host{}, infos, fact(Slow)},
		{"stock driver", "no_access", Host{}, infos, []LinkFacts{{}}},
		{"lanes", "width", Host{Slots: []SlotInfo{{PCI: "x", Width: 4, MaxWidth: 16}}}, infos, fact(Healthy)},
		{"replays", "replays", Host{Slots: []SlotInfo{{PCI: "x", Replays: 9}}}, infos, fact(Healthy)},
		{"impossible", "impossible_speed", Host{}, infos, impossible},
		{"staging", "staging", Host{}, infos, staging},
	} {
		if got := codes(c.h, c.infos, c.f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for v, want := range map[Verdict]bool{Healthy: true, NotProbed: true, Slow: true, Inconclusive: true, Corrupt: false, Hung: false, Unavailable: false} {
		if Safe(fact(v)) != want {
			t.Errorf("%s: safe %t", v, !want)
		}
	}
	if q := fact(Healthy); Safe(staging) || Safe([]LinkFacts{{Quarantined: "x", Finding: q[0].Finding}}) {
		t.Error("faulty staging, or a quarantine, is safe")
	}
}
