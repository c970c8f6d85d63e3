package sim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// misspelled finds fields of a topology file that are almost like one of the
// schema's. json.Unmarshal leaves them aside without a word, and the machine
// would be another one than was meant.
func misspelled(data []byte) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return err
	}
	if err := compareFields("", top, fields(Spec{}, "source", "host", "expect", "notes")); err != nil {
		return err
	}
	for _, list := range []struct {
		name  string
		known []string
	}{
		{"devices", fields(Device{})},
		{"links", fields(Link{}, "kind_from", "peer_gbps_from", "staged_gbps_from", "latency_from")},
	} {
		var items []map[string]json.RawMessage
		if err := json.Unmarshal(top[list.name], &items); len(top[list.name]) > 0 && err != nil {
			return fmt.Errorf("%s: %w", list.name, err)
		}
		for i, item := range items {
			if err := compareFields(fmt.Sprintf("%s[%d].", list.name, i), item, list.known); err != nil {
				return err
			}
		}
	}
	return nil
}

// fields lists the JSON names of a struct's fields, and others beside.
func fields(v any, more ...string) []string {
	t := reflect.TypeOf(v)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		more = append(more, name)
	}
	return more
}

func compareFields(at string, item map[string]json.RawMessage, known []string) error {
	names := make([]string, 0, len(item))
	for name := range item {
		names = append(names, name)
	}
	sort.Strings(names)
next:
	for _, name := range names {
		for _, k := range known {
			if name == k {
				continue next
			}
		}
		for _, k := range known {
			if len(k) > 3 && distance(name, k) <= 2 {
				return fmt.Errorf("%s%s: no such field; %s is meant?", at, name, k)
			}
		}
	}
	return nil
}

// distance is how many letters must be added, dropped or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := left
			if a[i] != b[j] {
				d++
			}
			left = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
