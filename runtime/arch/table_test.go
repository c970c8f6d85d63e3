package arch

import (
	"fmt"
	"strings"
	"testing"
)

// One line for each row: what must hold for that part and no other. The
// features are in the order of Features.List.
var lines = `
5.0  Maxwell          none   synchronous    no   49152   no   no   no   no   no   no   no   no   no   no   no   no   no   no
5.2  Maxwell          none   synchronous    no   49152   no   no   no   no   no   no   no   no   no   no   no   no   no   no
5.3  Maxwell          none   synchronous    no   49152   no   no   no   no   no   no   no   no   no   no   no   no   no   no
6.0  Pascal           none   synchronous    no   49152   no   no   no   no   no   no   no   no   no   no   no   no   no   no
6.1  Pascal           none   synchronous    no   49152   no   no   no   no   no   no   no   no   yes  no   no   no   no   no
6.2  Pascal           none   synchronous    no   49152   no   no   no   no   no   no   no   no   yes  no   no   no   no   no
7.0  Volta            none   synchronous    no   98304   no   no   no   no   no   no   no   no   yes  no   no   no   no   no
7.2  Volta            none   synchronous    no   98304   no   no   no   no   no   no   no   no   yes  no   no   no   no   no
7.5  Turing           none   synchronous    no   65536   no   no   no   no   no   no   no   no   yes  no   yes  no   no   no
8.0  Ampere           sm_80  event-ordered  yes  166912  yes  yes  yes  yes  no   no   no   no   yes  yes  yes  no   no   no
8.6  Ampere           sm_80  event-ordered  yes  101376  yes  yes  yes  yes  no   no   no   no   yes  yes  yes  no   no   no
8.7  Ampere           sm_80  event-ordered  no   166912  yes  yes  yes  yes  no   no   no   no   yes  yes  yes  no   no   no
8.8  unnamed          sm_80  synchronous    no   101376  yes  yes  yes  yes  no   no   no   no   yes  yes  yes  no   no   no
8.9  Ada_Lovelace     sm_80  event-ordered  yes  101376  yes  yes  yes  yes  yes  no   no   no   yes  yes  yes  no   no   no
9.0  Hopper           sm_80  event-ordered  yes  232448  yes  yes  yes  yes  slow no   own  no   yes  yes  yes  yes  yes  yes
10.0 Blackwell        sm_80  event-ordered  yes  232448  yes  yes  yes  yes  slow no   no   own  yes  yes  yes  yes  yes  yes
10.1 Blackwell_(Thor) sm_80  synchronous    no   232448  slow yes  slow slow slow no   no   own  yes  yes  yes  yes  yes  yes
10.3 Blackwell_Ultra  sm_80  event-ordered  yes  232448  yes  yes  yes  yes  slow no   no   own  yes  yes  yes  yes  yes  yes
10.7 Rubin            sm_80  synchronous    no   232448  yes  yes  yes  yes  slow no   no   own  yes  yes  yes  yes  yes  yes
11.0 Blackwell_(Thor) sm_80  event-ordered  no   232448  yes  yes  yes  yes  slow no   no   own  yes  yes  yes  yes  yes  yes
12.0 Blackwell        sm_80  event-ordered  yes  101376  yes  yes  yes  yes  yes  own  no   no   yes  yes  yes  yes  yes  yes
12.1 Blackwell        sm_80  event-ordered  no   101376  yes  yes  yes  yes  yes  own  no   no   yes  yes  yes  yes  yes  yes
`

func line(r Row) string {
	image := string(r.Image)
	if r.Image == NoImage {
		image = "none"
	}
	peers := map[bool]string{true: "yes", false: "no"}[r.Peers]
	s := []string{r.Capability.String(), strings.ReplaceAll(r.Name, " ", "_"), image, string(r.Copies), peers, fmt.Sprint(r.SharedBytes)}
	for _, f := range r.Features.List() {
		s = append(s, f.Claim.String())
	}
	return strings.Join(s, " ")
}

func TestTable(t *testing.T) {
	want := strings.Split(strings.TrimSpace(lines), "\n")
	rows := Rows()
	if len(rows) != len(want) {
		t.Fatalf("%d rows, %d lines: each row has its line", len(rows), len(want))
	}
	seen := map[ComputeCapability]bool{}
	for i, r := range rows {
		if w := strings.Join(strings.Fields(want[i]), " "); line(r) != w {
			t.Errorf("row %d:\n got %s\nwant %s", i, line(r), w)
		}
		if seen[r.Capability] {
			t.Errorf("%v has two rows", r.Capability)
		}
		seen[r.Capability] = true
		if got := Lookup(r.Capability); got != r || !got.Known {
			t.Errorf("Lookup(%v) = %+v", r.Capability, got)
		}
		for _, f := range r.Features.List() {
			if f.Evidence == "" {
				t.Errorf("%v: %s has no evidence", r.Capability, f.Name)
			}
		}
		// What nothing is known of takes the safe path.
		if r.Copies == EventOrdered && r.CopiesEvidence == Unproven || r.Peers && (r.PeersEvidence == Unproven || r.Integrated) {
			t.Errorf("%v: %s copies (%s), peers %t (%s): without evidence", r.Capability, r.Copies, r.CopiesEvidence, r.Peers, r.PeersEvidence)
		}
	}
}

// A part without a row, however new or old it looks, takes the safe path.
func TestUnknown(t *testing.T) {
	for _, s := range []string{"13.0", "9.1", "12.9", "8.1", "4.0", "99.9"} {
		c, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		r := Lookup(c)
		if r.Known || r.Capability != c || r.Image != Baseline || r.Copies != Synchronous || r.Peers || r.SharedBytes != 48<<10 {
			t.Errorf("%s: %+v", s, r)
		}
		for _, f := range r.Features.List() {
			if f.Has || f.Evidence != Unproven {
				t.Errorf("%s: %s is %v", s, f.Name, f.Claim)
			}
		}
		if n := r.Notice(); !strings.Contains(n, s) || !strings.Contains(n, "infer doctor --json") {
			t.Errorf("%s: notice %q", s, n)
		}
		if ok, why := PeersPossible(r, Lookup(Of(12, 0))); ok || !strings.Contains(why, s) {
			t.Errorf("%s with 12.0: %t, %s", s, ok, why)
		}
	}
}

// The failure this table is made against: a GeForce RTX 5090 took what was
// meant for Hopper, because its number is higher.
func TestBlackwellIsNotHopper(t *testing.T) {
	b, h := Lookup(Of(12, 0)), Lookup(Of(9, 0))
	if b.Features == h.Features || b.Features.WGMMA.Has || b.SharedBytes == h.SharedBytes || b.Name == h.Name {
		t.Errorf("12.0 is %+v, like 9.0", b)
	}
}

func TestPeersPossible(t *testing.T) {
	for _, c := range []struct {
		a, b string
		ok   bool
		why  string
	}{
		{"12.0", "12.0", true, ""},
		{"8.6", "8.9", true, ""},
		{"8.6", "8.0", true, ""},
		{"8.9", "12.0", false, "two generations"},
		{"12.0", "12.1", false, "12.1"},
		{"10.0", "12.0", false, "two generations"},
		{"7.5", "7.5", false, "7.5"},
	} {
		a, _ := Parse(c.a)
		b, _ := Parse(c.b)
		for range 2 {
			ok, why := PeersPossible(Lookup(a), Lookup(b))
			if ok != c.ok || !strings.Contains(why, c.why) {
				t.Errorf("%v to %v: %t, %q", a, b, ok, why)
			}
			a, b = b, a
		}
	}
}
