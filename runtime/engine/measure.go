package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// measure sizes a model for one layout by loading its parts on a device that
// only counts: a layer of each kind, embedding and head. The checkpoint is one
// of zeros with the model's tensors, so that neither weights nor more of the
// real one than its headers are needed.
func measure(m models.Model, dtype func(models.TensorSpec) (tensor.DType, error), y kernels.Layout, in *devicemap.Input, f kernels.Format) (*devicemap.Model, devicemap.Scratch, error) {
	c := m.Config()
	s := devicemap.Scratch{}
	kinds, err := layerKinds(m, dtype)
	if err != nil {
		return nil, s, err
	}
	ck, err := zeros(m, dtype, kinds.first)
	if err != nil {
		return nil, s, err
	}
	defer ck.Close()
	load := func(st devicemap.Stage, positions int) (on, away devicemap.Bytes, err error) {
		return probe(m, ck, y, st, positions, in, f)
	}
	out := &devicemap.Model{Tied: c.Tied, MaxContext: c.MaxPositions, Hidden: c.Hidden, HeadMACs: int64(c.Hidden) * int64(c.VocabSize)}

	// The rotary tables: what 16 positions more take, in rows of the table.
	first := kinds.first[0]
	const step = 16
	one, _, err := load(devicemap.Stage{Lo: first, Hi: first + 1}, step)
	if err != nil {
		return nil, s, err
	}
	two, _, err := load(devicemap.Stage{Lo: first, Hi: first + 1}, 2*step)
	if err != nil {
		return nil, s, err
	}
	out.TableRow = (two.Weights - one.Weights) / step

	sizes := make([]devicemap.Layer, len(kinds.first))
	for k, l := range kinds.first {
		here, _, err := load(devicemap.Stage{Lo: l, Hi: l + 1}, step)
		if err != nil {
			return nil, s, err
		}
		z := &sizes[k]
		z.Weights = here.Weights - step*out.TableRow
		z.KVElems = 2 * int64(c.Heads.KV) * int64(c.Heads.Dim)
		z.MACs, z.ExpertMACs = kinds.macs[k][0], kinds.macs[k][1]
		s.Middle = max(s.Middle, here.Activations)
		for _, ends := range []struct {
			embed, head bool
			to          *int64
		}{{true, false, &s.First}, {false, true, &s.Last}, {true, true, &s.Only}} {
			b, _, err := load(devicemap.Stage{Lo: l, Hi: l + 1, Embed: ends.embed, Head: ends.head}, step)
			if err != nil {
				return nil, s, err
			}
			*ends.to = max(*ends.to, b.Activations)
		}
	}
	for _, k := range kinds.of {
		out.Layers = append(out.Layers, sizes[k])
	}

	embed, _, err := load(devicemap.Stage{Embed: true}, step)
	if err != nil {
		return nil, s, err
	}
	head, _, err := load(devicemap.Stage{Lo: c.Layers, Hi: c.Layers, Head: true}, step)
	if err != nil {
		return nil, s, err
	}
	both, _, err := load(devicemap.Stage{Embed: true, Head: true}, step)
	if err != nil {
		return nil, s, err
	}
	out.Embed, out.Head = embed.Weights, head.Weights
	out.TiedHead = both.Weights - embed.Weights
	s.Bare = max(embed.Activations, head.Activations)
	return out, s, nil
}

// kinds of layers: those whose tensors are alike are one.
type layerKindsOf struct {
	first []int      // a layer of each kind
	of    []int      // kind of each layer
	macs  [][2]int64 // multiplications per token: without experts, of the experts a token takes
}

func layerKinds(m models.Model, dtype func(models.TensorSpec) (tensor.DType, error)) (layerKindsOf, error) {
	c := m.Config()
	signs := make([]bytes.Buffer, c.Layers)
	macs := make([][2]int64, c.Layers)
	for _, t := range m.Tensors() {
		if t.Layer < 0 {
			continue
		}
		d, err := dtype(t)
		if err != nil {
			return layerKindsOf{}, err
		}
		fmt.Fprintln(&signs[t.Layer], t.Shape, d)
		if len(t.Shape) > 1 {
			n := int64(1)
			for _, x := range t.Shape {
				n *= int64(x)
			}
			macs[t.Layer][0] += n
		}
	}
	var k layerKindsOf
	seen := map[string]int{}
	for l := range signs {
		kind, ok := seen[signs[l].String()]
		if !ok {
			kind = len(k.first)
			seen[signs[l].String()] = kind
			k.first = append(k.first, l)
			k.macs = append(k.macs, macs[l])
		}
		k.of = append(k.of, kind)
	}
	return k, nil
}

// probe loads one stage on a counting device and gives what it takes.
func probe(m models.Model, ck *loader.Checkpoint, y kernels.Layout, st devicemap.Stage, positions int, in *devicemap.Input, f kernels.Format) (on, away devicemap.Bytes, err error) {
	st.Device = device.ID{Kind: device.CPU}
	c := &counting{info: device.Info{ID: st.Device}, layout: y}
	r, err := Load(context.Background(), RunnerConfig{
		Model: m, Checkpoint: ck, Backends: []kernels.Backend{c}, Format: f,
		Plan: devicemap.Plan{
			Stages: []devicemap.Stage{st}, MaxContext: positions,
			MaxSeqs: in.MaxSeqs, MaxTokens: in.MaxTokens, MaxLogits: in.MaxLogits,
		},
	})
	if err != nil {
		return on, away, fmt.Errorf("measure %v: %w", st, err)
	}
	on = r.Bytes()[0]
	return on, away, r.Close()
}

// zeros is a checkpoint with the tensors of some layers, embedding and head,
// all zeros.
func zeros(m models.Model, dtype func(models.TensorSpec) (tensor.DType, error), layers []int) (*loader.Checkpoint, error) {
	wanted := map[int]bool{models.InEmbedding: true, models.InHead: true}
	for _, l := range layers {
		wanted[l] = true
	}
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header, at := map[string]entry{}, int64(0)
	for _, t := range m.Tensors() {
		if !wanted[t.Layer] {
			continue
		}
		d, err := dtype(t)
		if err != nil {
			return nil, err
		}
		n := int64(d.Bits())
		for _, x := range t.Shape {
			n *= int64(x)
		}
		header[t.Name] = entry{d.String(), t.Shape, [2]int64{at, at + n/8}}
		at += n / 8
	}
	raw, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw...)
	return loader.OpenFS(zeroFS{"config.json": {[]byte("{}"), 2}, "model.safetensors": {file, int64(len(file)) + at}}, "measure")
}

// zeroFS has files that begin with some bytes and are zeros from there on.
type zeroFS map[string]zeroFile

type zeroFile struct {
	head []byte
	size int64
}

func (z zeroFS) Open(name string) (fs.File, error) {
	f, ok := z[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openZero{zeroFile: f, name: name}, nil
}

type openZero struct {
	zeroFile
	name string
	at   int64
}

func (f *openZero) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(0, min(int64(len(p)), f.size-off)))
	clear(p[:n])
	if off < int64(len(f.head)) {
		copy(p[:n], f.head[off:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *openZero) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	return n, err
}

func (f *openZero) Stat() (fs.FileInfo, error) { return f, nil }
func (f *openZero) Close() error               { return nil }

// The FileInfo of an openZero.
func (f *openZero) Name() string     { return f.name }
func (f *openZero) Size() int64      { return f.size }
func (*openZero) Mode() fs.FileMode  { return 0o444 }
func (*openZero) ModTime() time.Time { return time.Time{} }
func (*openZero) IsDir() bool        { return false }
func (*openZero) Sys() any           { return nil }
