package cuda

import (
	"slices"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	cs := []candidate{
		{UUID: "GPU-aaaa1111-0", PCI: "0000:41:00.0", Speed: 2},
		{UUID: "GPU-aaaa2222-0", PCI: "0000:01:00.0", Speed: 3},
		{UUID: "GPU-bbbb3333-0", PCI: "0000:81:00.0", Speed: 3},
	}
	const unset = "unset"
	for _, c := range []struct {
		order, devices string
		want           []int
		note           string // part of it
	}{
		{"", unset, []int{0, 1, 2}, ""},
		{"PCI_BUS_ID", unset, []int{1, 0, 2}, ""},
		{"FASTEST_FIRST", unset, []int{1, 2, 0}, ""},
		{"", "0", []int{0}, ""},
		{"", "2,0", []int{2, 0}, ""},
		{"", " 2 , 0 ", []int{2, 0}, ""},
		{"PCI_BUS_ID", "0,1", []int{1, 0}, ""},
		{"FASTEST_FIRST", "2", []int{0}, ""},
		{"", "1gpu,2x", []int{1, 2}, ""},
		// None.
		{"", "", nil, "hides every GPU"},
		{"", "-1", nil, "hides every GPU"},
		{"", "none", nil, "lists 1, of which 0"},
		// The first invalid entry ends the list.
		{"", "1,3,0", []int{1}, "lists 3, of which 1"},
		{"", "1,-1,0", []int{1}, "lists 3, of which 1"},
		{"", "1,,0", []int{1}, "lists 3, of which 1"},
		{"", "99999999999999999999", nil, "lists 1, of which 0"},
		{"", "0,GPU-bbbb", []int{0}, "lists 2, of which 1"},
		// Named twice: nothing.
		{"", "1,0,1", nil, "names a GPU twice"},
		{"", "GPU-b,GPU-bbbb", nil, "names a GPU twice"},
		// UUIDs by an unambiguous beginning.
		{"", "GPU-bbbb3333-0,GPU-aaaa1111-0", []int{2, 0}, ""},
		{"", "GPU-b,GPU-aaaa2", []int{2, 1}, ""},
		{"", "GPU-aaaa", nil, "lists 1, of which 0"},
		{"", "GPU-", nil, "lists 1, of which 0"},
		{"", "GPU-cccc,GPU-b", nil, "lists 2, of which 0"},
		{"", "GPU-b,1", []int{2}, "lists 2, of which 1"},
	} {
		got, note := visible(cs, c.order, c.devices, c.devices != unset)
		if !slices.Equal(got, c.want) || (note == "") != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("order %q, devices %q: %v %q, want %v and a note with %q", c.order, c.devices, got, note, c.want, c.note)
		}
	}
}

func TestCheckVisibleRefusesSlices(t *testing.T) {
	for _, ok := range []string{"", "0,1", "GPU-aaaa", "-1", "none"} {
		if err := checkVisible(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"MIG-8a", "0,MIG-8a", " mig-GPU-aaaa/1/0"} {
		if err := checkVisible(bad); err == nil || !strings.Contains(err.Error(), "MIG") || !strings.Contains(err.Error(), "UUID") {
			t.Errorf("%q: %v, want an error that says what to do", bad, err)
		}
	}
}
