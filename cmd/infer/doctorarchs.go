package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"infer/runtime/arch"
)

// archRow is a row of the table as JSON.
type archRow struct {
	Capability     string                 `json:"compute_capability"`
	Name           string                 `json:"name"`
	Products       string                 `json:"products"`
	Kernels        string                 `json:"kernels"` // "" when none run there
	SharedBytes    int                    `json:"shared_bytes_per_block"`
	Integrated     bool                   `json:"integrated"`
	Copies         arch.CopyMode          `json:"copies"`
	CopiesEvidence arch.Evidence          `json:"copies_evidence"`
	Peers          bool                   `json:"peers_may_be_probed"`
	PeersEvidence  arch.Evidence          `json:"peers_evidence"`
	Features       map[string]archFeature `json:"features"`
}

type archFeature struct {
	Has      bool          `json:"has"`
	Emulated bool          `json:"emulated,omitempty"`
	OwnImage bool          `json:"needs_own_image,omitempty"`
	Evidence arch.Evidence `json:"evidence"`
}

// printArchs prints the architecture table, the unknown row last.
func printArchs(w io.Writer, asJSON bool) error {
	rows := append(arch.Rows(), arch.Lookup(arch.ComputeCapability{}))
	if asJSON {
		var list []archRow
		for _, r := range rows {
			a := archRow{
				Capability: capabilityName(r), Name: r.Name, Products: r.Products, Kernels: string(r.Image), SharedBytes: r.SharedBytes,
				Integrated: r.Integrated, Copies: r.Copies, CopiesEvidence: r.CopiesEvidence, Peers: r.Peers, PeersEvidence: r.PeersEvidence,
				Features: map[string]archFeature{},
			}
			for _, f := range r.Features.List() {
				a.Features[f.Name] = archFeature{f.Has, f.Emulated, f.OwnImage, f.Evidence}
			}
			list = append(list, a)
		}
		return json.NewEncoder(w).Encode(map[string]any{"schema": "infer-architectures/1", "architectures": list})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := []string{"CC", "NAME", "KERNELS", "COPIES", "PEERS"}
	for _, f := range rows[0].Features.List() {
		head = append(head, strings.ToUpper(f.Name))
	}
	fmt.Fprintln(t, strings.Join(append(head, "PRODUCTS"), "\t"))
	for _, r := range rows {
		line := []string{capabilityName(r), r.Name, "none", fmt.Sprintf("%s (%s)", r.Copies, r.CopiesEvidence), peersWord(r)}
		if r.Image != arch.NoImage {
			line[2] = string(r.Image)
		}
		for _, f := range r.Features.List() {
			line = append(line, f.Claim.String())
		}
		fmt.Fprintln(t, strings.Join(append(line, r.Products), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, `
A capability without a row takes the last one: what is safe everywhere.
Features: yes, in plain PTX; slow, made of other instructions; own, only in an
image for exactly that part or its family; no; ?, unknown. Evidence: the maker's
assembler for features, the word in brackets for copies and peers. "Peers" is
whether peer copies may be probed; only a probe says whether they work.
`)
	return err
}

func capabilityName(r arch.Row) string {
	if s := r.Capability.String(); s != "" {
		return s
	}
	return "other"
}

func peersWord(r arch.Row) string {
	word := "no"
	if r.Peers {
		word = "probe"
	}
	return fmt.Sprintf("%s (%s)", word, r.PeersEvidence)
}
