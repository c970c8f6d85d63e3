package transfer

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"infer/runtime/device"
)

// Host is what the machine says of itself that bears on copies between GPUs.
// None of it decides anything.
type Host struct {
	IOMMU        string     `json:"iommu"`         // translating, passthrough, off or unknown
	IOMMUOptions []string   `json:"iommu_options"` // of the kernel's command line
	Slots        []SlotInfo `json:"slots"`
}

// SlotInfo is a GPU's place on the PCIe bus.
type SlotInfo struct {
	PCI      string `json:"pci"`
	Group    string `json:"iommu_group,omitempty"`
	NUMANode int    `json:"numa_node"` // −1: unknown
	Width    int    `json:"width"`     // lanes in use; 0: unknown
	MaxWidth int    `json:"max_width"`
	Speed    string `json:"speed,omitempty"`
	MaxSpeed string `json:"max_speed,omitempty"`
	Replays  int64  `json:"replays"` // of the link, for errors; −1: unknown
	// SwitchPeers: bridges between this slot and the root may send peer traffic
	// up to the root instead of across (ACS); "" where the kernel does not say.
	ACS string `json:"acs,omitempty"`
}

// ReadHost reads a machine's root folder.
func ReadHost(root fs.FS, infos []device.Info) Host {
	h := Host{IOMMU: "unknown"}
	for _, word := range strings.Fields(readLine(root, "proc/cmdline")) {
		if name, _, _ := strings.Cut(word, "="); strings.Contains(name, "iommu") || name == "pci" || strings.Contains(word, "acs") {
			h.IOMMUOptions = append(h.IOMMUOptions, word)
		}
	}
	kinds := map[string]int{}
	groups, err := fs.ReadDir(root, "sys/kernel/iommu_groups")
	for _, g := range groups {
		kinds[readLine(root, path.Join("sys/kernel/iommu_groups", g.Name(), "type"))]++
	}
	switch {
	case kinds["DMA"]+kinds["DMA-FQ"] > 0:
		h.IOMMU = "translating"
	case kinds["identity"] > 0:
		h.IOMMU = "passthrough"
	case (err == nil || errors.Is(err, fs.ErrNotExist)) && len(groups) == 0:
		if _, err := fs.ReadDir(root, "sys/kernel"); err == nil {
			h.IOMMU = "off"
		}
	}
	for _, i := range infos {
		if i.GPU != nil && !i.GPU.Simulated {
			h.Slots = append(h.Slots, readSlot(root, i.GPU.PCI))
		}
	}
	return h
}

func readSlot(root fs.FS, pci string) SlotInfo {
	dir := path.Join("sys/bus/pci/devices", pci)
	s := SlotInfo{PCI: pci, NUMANode: -1, Replays: -1}
	number := func(name string, to *int) {
		if n, err := strconv.Atoi(readLine(root, path.Join(dir, name))); err == nil {
			*to = n
		}
	}
	number("numa_node", &s.NUMANode)
	number("current_link_width", &s.Width)
	number("max_link_width", &s.MaxWidth)
	s.Speed, s.MaxSpeed = readLine(root, path.Join(dir, "current_link_speed")), readLine(root, path.Join(dir, "max_link_speed"))
	for line := range strings.Lines(readLine(root, path.Join(dir, "aer_dev_correctable"))) {
		// Like "Rollover 0", "Timeout 3": replays that ran over or timed out.
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && (name == "Rollover" || name == "Timeout") {
			s.Replays = max(s.Replays, 0) + n
		}
	}
	if link, err := fs.ReadLink(root, path.Join(dir, "iommu_group")); err == nil {
		s.Group = path.Base(link)
	}
	return s
}

// Hint is a likely cause of what was found, with what to do.
type Hint struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Hints puts what was found and what is known of the machine together.
func Hints(h Host, infos []device.Info, s []LinkFacts) []Hint {
	var list []Hint
	hint := func(code, text string) {
		if !slices.ContainsFunc(list, func(x Hint) bool { return x.Code == code && x.Text == text }) {
			list = append(list, Hint{code, text})
		}
	}
	faulty, slow, offered, refused := 0, 0, 0, 0
	for _, f := range s {
		switch f.Finding.Verdict {
		case Corrupt, Hung, Unavailable:
			faulty++
		case Slow:
			slow++
		}
		if f.Quarantined != "" {
			faulty++
		}
		if f.Link.PeerAccess {
			offered++
		} else {
			refused++
		}
		if f.Finding.Staging != "" {
			hint("staging", "copies between GPUs and host memory are faulty themselves ("+f.Finding.Staging+"): suspect the card, its slot or riser, or the machine's memory")
		}
		if f.Finding.Verdict == Inconclusive && f.Finding.Ceiling > 0 && f.Finding.Peer.GBps > f.Finding.Ceiling {
			hint("impossible_speed", "a copy that is faster than its link did not happen: the driver claims peer access that the machine lacks")
		}
	}
	if faulty > 0 && h.IOMMU == "translating" {
		hint("iommu", "the IOMMU translates addresses, and has no entry for the peer's memory: writes vanish without an error. Boot with iommu=pt (and intel_iommu=on or amd_iommu=on), or switch VT-d / AMD-Vi off in the BIOS")
	}
	if faulty > 0 && h.IOMMU != "translating" {
		hint("acs", "if the GPUs sit behind PCIe bridges, look at ACS: lspci -vvv | grep ACSCtl. With SrcValid+ or ReqRedir+ on a bridge, peer traffic is sent up to the root, where it may be lost")
	}
	for _, i := range infos {
		g := i.GPU
		if g == nil {
			continue
		}
		if faulty > 0 && g.BAR1Bytes > 0 && g.BAR1Bytes < i.TotalBytes {
			hint("bar1", i.ID.String()+": BAR1 is smaller than the memory, which drivers patched for peer access need to be whole: enable Resizable BAR and Above 4G Decoding in the BIOS")
		}
	}
	if faulty > 0 && offered > 0 {
		hint("driver", "the driver claims peer access that does not work here. It is not used; the text is right without it. --no-peer spares the probe")
	}
	if slow > 0 {
		hint("slow", "peer copies are slower than the way by the host: usual where GPUs are on different sockets, or in virtual machines")
	}
	if offered == 0 && refused > 0 {
		hint("no_access", "the driver offers no peer copies between these GPUs, as for most GeForce cards: copies go by way of the host, which is right and a little slower")
	}
	for _, slot := range h.Slots {
		if slot.Width > 0 && slot.Width < slot.MaxWidth {
			hint("width", slot.PCI+" runs with "+strconv.Itoa(slot.Width)+" of "+strconv.Itoa(slot.MaxWidth)+" lanes: look at the slot, the riser and bifurcation")
		}
		if slot.Replays > 0 {
			hint("replays", slot.PCI+" has replayed "+strconv.FormatInt(slot.Replays, 10)+" packets: a marginal slot or riser")
		}
	}
	return list
}

// Safe tells whether nothing was found that harms data or hangs.
func Safe(s []LinkFacts) bool {
	for _, f := range s {
		switch f.Finding.Verdict {
		case Corrupt, Hung, Unavailable:
			return false
		}
		if f.Quarantined != "" || f.Finding.Staging != "" {
			return false
		}
	}
	return true
}
