package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"infer/runtime/transfer"
)

// print is the diagnosis for people: the GPUs, a matrix of the links as
// nvidia-smi topo -m has it, and what to do.
func (d *diagnosis) print(w io.Writer) error {
	fmt.Fprintf(w, "infer %s, CPU kernels %s\n", d.Version, d.CPU)
	switch {
	case d.Simulated != "":
		fmt.Fprintf(w, "simulated machine: %s\n", d.Simulated)
	case d.Driver != "":
		fmt.Fprintf(w, "NVIDIA driver %s\n", d.Driver)
	}
	if d.Note != "" {
		fmt.Fprintln(w, d.Note)
	}
	if len(d.GPUs) == 0 {
		_, err := fmt.Fprintln(w, "\nno GPUs: the CPU computes. Nothing to examine.")
		return err
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tNAME\tCC\tARCHITECTURE\tKERNELS\tCOPIES\tMEMORY\tPCIe\tBAR1\tNUMA\tPCI")
	for _, g := range d.GPUs {
		kernels := g.Kernels
		if kernels == "" {
			kernels = "none"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Device, g.Name, g.Capability, g.Architecture, kernels, g.Copies,
			gib(g.Memory), pcie(g.PCIeGen, g.PCIeWidth), gib(g.BAR1), numa(g.NUMANode), g.PCI)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range d.GPUs {
		if g.Notice != "" {
			fmt.Fprintf(w, "%s: %s\n", g.Device, g.Notice)
		}
	}
	if len(d.Links) > 0 {
		if err := d.printLinks(w); err != nil {
			return err
		}
	}
	options := "no options"
	if len(d.Host.IOMMUOptions) > 0 {
		options = strings.Join(d.Host.IOMMUOptions, " ")
	}
	if d.Simulated == "" {
		fmt.Fprintf(w, "\nIOMMU: %s (%s)\n", d.Host.IOMMU, options)
	}
	for _, h := range d.Hints {
		fmt.Fprintf(w, "hint: %s\n", h.Text)
	}
	for _, p := range d.Problems {
		fmt.Fprintf(w, "note: %s\n", p)
	}
	if !d.Safe {
		return nil
	}
	verdict := "all well: every way that is used has been verified, and is verified again in every step"
	if slices.ContainsFunc(d.Links, func(l linkDiagnosis) bool { return l.Probe.Verdict == transfer.Inconclusive }) {
		verdict = "nothing unsafe was found. Links that are unclear go by way of the host, which is verified in every step"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}

// printLinks prints the matrix, and a line for each link whose state needs one.
func (d *diagnosis) printLinks(w io.Writer) error {
	n := len(d.GPUs)
	cells := map[string]string{}
	speeds := false
	for _, l := range d.Links {
		cell := l.Kind + " " + d.word(l)
		if l.Probe.Peer.GBps > 0 {
			cell += fmt.Sprintf(" %.4g", l.Probe.Peer.GBps)
			speeds = true
		}
		cells[l.From+">"+l.To] = strings.TrimSpace(cell)
	}
	fmt.Fprintln(w, "\nFrom the row's GPU to the column's:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range n {
		fmt.Fprintf(t, "\t%s", d.GPUs[i].Device)
	}
	fmt.Fprintln(t)
	for i := range n {
		fmt.Fprint(t, d.GPUs[i].Device)
		for j := range n {
			cell := "–"
			if i != j {
				cell = cells[d.GPUs[i].Device+">"+d.GPUs[j].Device]
			}
			fmt.Fprintf(t, "\t%s", cell)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	legend := "ok: direct; host: by way of the host, no direct way is offered, or wanted; slow, unclear, CORRUPT, HUNG, FAILED, QUARANTINED: by way of the host"
	if speeds {
		legend += "; numbers: GB/s direct"
	}
	fmt.Fprintf(w, "%s.\nProbing took %.1f s", legend, d.Seconds)
	if d.Modelled > 0 {
		fmt.Fprintf(w, ", %.2g s by the simulated machine's clock", d.Modelled)
	}
	fmt.Fprintln(w, ".")
	for i, f := range d.facts {
		if word := d.word(d.Links[i]); word != "ok" && word != "host" {
			fmt.Fprintf(w, "%v: %s\n", f.Pair, transfer.Decide(f).Why())
		}
		if f.Finding.Staging != "" {
			fmt.Fprintf(w, "%v: by way of the host: %s\n", f.Pair, f.Finding.Staging)
		}
	}
	return nil
}

// word is a link's state in the matrix.
func (d *diagnosis) word(l linkDiagnosis) string {
	if l.Quarantined != "" {
		return "QUARANTINED"
	}
	switch l.Probe.Verdict {
	case transfer.Healthy:
		return "ok"
	case transfer.NotProbed:
		return "host"
	case transfer.Slow:
		return "slow"
	case transfer.Corrupt:
		return "CORRUPT"
	case transfer.Hung:
		return "HUNG"
	case transfer.Unavailable:
		return "FAILED"
	}
	return "unclear"
}

func gib(n int64) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
}

func pcie(gen, width int) string {
	if gen == 0 || width == 0 {
		return "?"
	}
	return fmt.Sprintf("%d x%d", gen, width)
}

func numa(n int) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}
