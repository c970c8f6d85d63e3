package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Names and numbers are what encoding/json reads, however they are written.
func TestWalk(t *testing.T) {
	const text = "{ \"a\" : 1,\"b\\\\\":2 ,\n\t\"\\\"\":3,\"\\u00e9\\ud83d\\ude00\":4,\"日本\":  5\r,\"\":6,\"x,:}]\":7}"
	var want map[string]int64
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	w := walk{b: []byte(text)}
	w.next()
	w.enter()
	for w.next() != '}' {
		name := string(w.str())
		w.next()
		id, ok := w.id()
		if !ok {
			t.Errorf("%q: no number", name)
		}
		got[name] = id
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, v := range []string{`"a\"]}b"`, `-1.5e3`, `{"a":[1,"]"],"b":{}}`, `[[],"\\"]`, `true`, `null`} {
		for _, behind := range []string{",1]", "]", " ]"} {
			w := walk{b: []byte("[" + v + behind)}
			w.enter()
			w.next()
			if got := string(w.value()); got != v {
				t.Errorf("%s%s: got the value %s", v, behind, got)
			}
		}
	}
	for _, v := range []string{`1.5`, `"1"`, `1e3`, `[1]`, `99999999999999999999`} {
		w := walk{b: []byte("[" + v + "]")}
		w.enter()
		w.next()
		if id, ok := w.id(); ok || w.next() != ']' {
			t.Errorf("%s is the number %d", v, id)
		}
	}
}

// A set keeps what was added, whatever room it began with, and no copy of what
// the caller changes.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, room := range []int{0, 1, 5000} {
		p, want := newPieces(room), map[string]int32{}
		var buf []byte
		for i := range int32(20_000) {
			buf = fmt.Appendf(buf[:0], "%x", rng.IntN(9000))
			old, known := p.add(buf, i)
			before, there := want[string(buf)]
			if known != there || known && old != before {
				t.Fatalf("add %s: %d, %v, want %d, %v", buf, old, known, before, there)
			}
			if !there {
				want[string(buf)] = i
			} else if i%2 == 0 {
				want[string(buf)] = i
				p.set(string(buf), i)
			}
		}
		p.set("set", 7)
		want["set"] = 7
		if p.len() != len(want) || len(p.texts) != len(p.ids) {
			t.Fatalf("%d pieces, %d texts and %d ids, want %d", p.len(), len(p.texts), len(p.ids), len(want))
		}
		for s, id := range want {
			if got, ok := p.get(s); !ok || got != id {
				t.Errorf("%q: %d, %v, want %d", s, got, ok, id)
			}
		}
		for _, s := range []string{"", "none", "ffffff"} {
			if id, ok := p.get(s); ok {
				t.Errorf("%q has the id %d", s, id)
			}
		}
	}
}
