package devicemap

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"infer/runtime/device"
)

var (
	cpu0 = device.ID{Kind: device.CPU}
	cpu1 = device.ID{Kind: device.CPU, Index: 1}
	gpu0 = device.ID{Kind: device.CUDA}
)

func TestParse(t *testing.T) {
	for in, want := range map[string][]Part{
		"":                        nil,
		"auto":                    nil,
		"cpu":                     {{Device: cpu0, Hi: 24}},
		"cuda:0":                  {{Device: gpu0, Hi: 24}},
		"cpu=0-11,cpu:1=12-23":    {{Device: cpu0, Hi: 12}, {Device: cpu1, Lo: 12, Hi: 24}},
		" cuda:0=0 , cpu=1-23 ":   {{Device: gpu0, Hi: 1}, {Device: cpu0, Lo: 1, Hi: 24}},
		"cuda:0=0-2,cpu=3-":       {{Device: gpu0, Hi: 3}, {Device: cpu0, Lo: 3, Hi: 24}},
		"cuda:0=0-,experts=cpu":   {{Device: gpu0, Hi: 24, ExpertsOn: cpu0}},
		"experts=cpu,cuda:0=0-23": {{Device: gpu0, Hi: 24, ExpertsOn: cpu0}},
	} {
		if got, err := Parse(in, 24); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"gpu":                      "unknown device",
		"cuda":                     "say which",
		"cuda:x":                   "not a number",
		"cuda:01":                  "not a number",
		"cpu=0-11":                 "layers 12-23 are not placed",
		"cpu=0-24":                 "has layer 24",
		"cpu=0-11,cuda:0=11-23":    "begins with layer 11",
		"cpu=1-23":                 "begins with layer 1",
		"cpu=5-2":                  "not like",
		"cpu=0-11,cuda:0":          "not like",
		"cpu=a-b":                  "not like",
		"cpu=0--3":                 "not like",
		"cpu=0-,cuda:0=24-":        "has no layers",
		"cpu=0-,cuda:0=25-":        "has no layers",
		"cpu=-3":                   "not like",
		"experts=gpu":              "unknown device",
		"experts=cpu":              "layers 0-23 are not placed",
		"cpu=99999999999999999999": "not like",
	} {
		if _, err := Parse(in, 24); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// 4 layers of 1000 bytes, blocks of 16 tokens; K/V per layer and block is
// 16 × 8 elements × 2 bytes = 256 bytes.
func small() Input {
	in := Input{BlockSize: 16, MaxContext: 64, MaxSeqs: 2, MaxTokens: 32, MaxLogits: 4}
	in.Model = Model{Embed: 500, Head: 510, TiedHead: 10, Tied: true, MaxContext: 128}
	for range 4 {
		in.Model.Layers = append(in.Model.Layers, Layer{Weights: 1000, KVElems: 8})
	}
	in.Devices = []Device{{Info: device.Info{ID: cpu0, FreeBytes: 1 << 20}, Reserve: 100, KVBits: 16, Scratch: Scratch{300, 300, 300, 300, 300}}}
	return in
}

func TestOneDevice(t *testing.T) {
	p, err := Auto(small())
	if err != nil {
		t.Fatal(err)
	}
	want := Bytes{Weights: 4510, KV: 8 * 4 * 256, Activations: 300, Reserve: 100}
	s := p.Stages[0]
	if len(p.Stages) != 1 || s.Bytes != want || !s.Embed || !s.Head || s.Lo != 0 || s.Hi != 4 || p.Blocks != 8 || p.MaxContext != 64 {
		t.Fatalf("%+v", p)
	}
}

func TestUntiedAndUnknownMemory(t *testing.T) {
	in := small()
	in.Model.Tied = false
	in.Devices[0].Info.FreeBytes = 0
	p, err := Auto(in)
	if err != nil || p.Stages[0].Bytes.Weights != 5010 || p.Blocks != 8 || !strings.Contains(strings.Join(p.Reasons, "\n"), "unknown") {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestMemoryLimitsBlocks(t *testing.T) {
	in := small()
	base := int64(4510 + 300 + 100)
	in.Devices[0].Info.FreeBytes = base + 5*1024 + 1023 // five blocks and not six
	if p, err := Auto(in); err != nil || p.Blocks != 5 || p.MaxContext != 64 {
		t.Fatalf("%+v, %v", p, err)
	}
	in.Devices[0].Limit = base + 3*1024 // less than one sequence of 64
	_, err := Auto(in)
	if !errors.Is(err, ErrDoesNotFit) || !strings.Contains(err.Error(), "context of 48 tokens, 64 are wanted") {
		t.Fatalf("%v", err)
	}
	in.MaxContext = 0 // as much as fits
	if p, err := Auto(in); err != nil || p.Blocks != 3 || p.MaxContext != 48 || !strings.Contains(strings.Join(p.Reasons, "\n"), "cut from 128 to 48") {
		t.Fatalf("%+v, %v", p, err)
	}
	in.Devices[0].Limit = base - 1
	if _, err := Auto(in); !errors.Is(err, ErrDoesNotFit) || !strings.Contains(err.Error(), "4.4 KiB") {
		t.Fatalf("%v", err)
	}
}

func TestTwoDevices(t *testing.T) {
	in := small()
	in.Devices = append(in.Devices, Device{Info: device.Info{ID: cpu1, FreeBytes: 1000 + 510 + 300 + 7*256}, KVBits: 16, Scratch: Scratch{300, 300, 300, 300, 300}})
	parts, err := Parse("cpu=0-2,cpu:1=3", 4)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Fixed(in, parts)
	if err != nil {
		t.Fatal(err)
	}
	a, b := p.Stages[0], p.Stages[1]
	if p.Blocks != 7 || a.Bytes != (Bytes{3500, 7 * 3 * 256, 300, 0, 100}) || b.Bytes != (Bytes{1510, 7 * 256, 300, 0, 0}) {
		t.Fatalf("%+v", p)
	}
	if !a.Embed || a.Head || b.Embed || !b.Head || a.String() != "cpu: embedding layers 0-2" || b.String() != "cpu:1: layer 3 head" {
		t.Fatalf("%v, %v", a, b)
	}
	if again, _ := Fixed(in, parts); !reflect.DeepEqual(p, again) {
		t.Fatal("another plan from the same input")
	}
	// Two stages on one device share its memory and its reserve.
	parts, _ = Parse("cpu=0,cpu:1=1-2,cpu=3", 4)
	in.Devices[1].Info.FreeBytes = 0
	p, err = Fixed(in, parts)
	if on := p.On(cpu0); err != nil || on.Reserve != 100 || on.Weights != 3010 {
		t.Fatalf("%+v, %v", on, err)
	}
	if _, err := Fixed(in, []Part{{Device: gpu0, Hi: 4}}); err == nil || !strings.Contains(err.Error(), "no device cuda:0") {
		t.Fatalf("%v", err)
	}
}

func TestContextBeyondTheModel(t *testing.T) {
	in := small()
	in.MaxContext = 129
	if _, err := Auto(in); err == nil || !strings.Contains(err.Error(), "128") {
		t.Fatalf("%v", err)
	}
}
