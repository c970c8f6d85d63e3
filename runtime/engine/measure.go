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
func measure(m models.Model, dtype dtypes, y kernels.Layout, in *devicemap.Input, f kernels.Format) (d devicemap.Device, err error) {
	kinds, err := layerKinds(m, dtype)
	if err != nil {
		return d, err
	}
	ck, err := zeros(m, dtype, kinds.first)
	if err != nil {
		return d, err
	}
	defer ck.Close()
	c := m.Config()
	const step = 16 // positions of the rotary tables
	load := func(st devicemap.Stage, positions int) (on, away devicemap.Bytes) {
		if err == nil {
			on, away, err = probe(m, ck, y, st, positions, in, f)
		}
		return on, away
	}
	out := &devicemap.Model{Tied: c.Tied, MaxContext: c.MaxPositions, Hidden: c.Hidden, HeadMACs: int64(c.Hidden) * int64(c.VocabSize)}

	d.Model = out

	// The rotary tables: what so many positions more take.
	one := devicemap.Stage{Lo: kinds.first[0], Hi: kinds.first[0] + 1}
	less, _ := load(one, step)
	more, _ := load(one, 2*step)
	out.TableRow = (more.Weights - less.Weights) / step

	sizes := make([]devicemap.Layer, len(kinds.first))
	for k, l := range kinds.first {
		st := devicemap.Stage{Lo: l, Hi: l + 1}
		here, _ := load(st, step)
		z := &sizes[k]
		z.Weights = here.Weights - step*out.TableRow
		z.KVElems = 2 * int64(c.Heads.KV) * int64(kernels.KVDim(c.Heads.Dim, y.KVType()))
		z.MACs = kinds.macs[k].dense
		if kinds.macs[k].experts > 0 {
			z.NumExperts, z.TopK = c.Experts, c.ExpertsPerToken
			z.ExpertMACs = kinds.macs[k].experts / int64(c.Experts) * int64(c.ExpertsPerToken)
			st.ExpertsOn = device.ID{Kind: device.CPU, Index: 1}
			rest, away := load(st, step)
			z.Experts = here.Weights - rest.Weights
			z.Weights -= z.Experts
			d.Experts = max(d.Experts, away.Activations)
		}
		for _, p := range []struct {
			embed, head bool
			own, split  *int64
		}{
			{true, false, &d.Scratch.First, &d.Split.First},
			{false, false, &d.Scratch.Middle, &d.Split.Middle},
			{false, true, &d.Scratch.Last, &d.Split.Last},
			{true, true, &d.Scratch.Only, &d.Split.Only},
		} {
			at := devicemap.Stage{Lo: l, Hi: l + 1, Embed: p.embed, Head: p.head}
			b, _ := load(at, step)
			*p.own = max(*p.own, b.Activations)
			at.ExpertsOn = st.ExpertsOn
			b, _ = load(at, step)
			*p.split = max(*p.split, b.Activations)
		}
	}
	for l, k := range kinds.of {
		out.Layers = append(out.Layers, sizes[k])
		if c.Windows != nil {
			out.Layers[l].Window = c.Windows[l]
		}
	}

	embed, _ := load(devicemap.Stage{Embed: true}, step)
	head, _ := load(devicemap.Stage{Lo: c.Layers, Hi: c.Layers, Head: true}, step)
	both, _ := load(devicemap.Stage{Embed: true, Head: true}, step)
	out.Embed, out.Head, out.TiedHead = embed.Weights, head.Weights, both.Weights-embed.Weights
	d.Scratch.Bare = max(embed.Activations, head.Activations)
	d.Split.Bare = d.Scratch.Bare
	return d, err
}

// dtypes tells how a tensor is stored.
type dtypes func(models.TensorSpec) (tensor.DType, error)

// kinds of layers: those whose tensors are alike are one.
type kinds struct {
	first []int // a layer of each kind
	of    []int // kind of each layer
	macs  []macs
}

// macs are parameters that take part in products: without experts, and of all
// experts.
type macs struct{ dense, experts int64 }

func layerKinds(m models.Model, dtype dtypes) (kinds, error) {
	c := m.Config()
	signs, counts := make([]bytes.Buffer, c.Layers), make([]macs, c.Layers)
	for _, t := range m.Tensors() {
		if t.Layer < 0 {
			continue
		}
		d, err := dtype(t)
		if err != nil {
			return kinds{}, err
		}
		fmt.Fprintln(&signs[t.Layer], t.Shape, t.Expert, d)
		if len(t.Shape) < 2 {
			continue
		}
		n := int64(1)
		for _, x := range t.Shape {
			n *= int64(x)
		}
		if t.Expert {
			counts[t.Layer].experts += n
		} else {
			counts[t.Layer].dense += n
		}
	}
	var k kinds
	seen := map[string]int{}
	for l := range signs {
		kind, ok := seen[signs[l].String()]
		if !ok {
			kind = len(k.first)
			seen[signs[l].String()] = kind
			k.first, k.macs = append(k.first, l), append(k.macs, counts[l])
		}
		k.of = append(k.of, kind)
	}
	return k, nil
}

// probe loads one stage on counting devices and gives what it takes, on its
// own and on that of its experts.
func probe(m models.Model, ck *loader.Checkpoint, y kernels.Layout, st devicemap.Stage, positions int, in *devicemap.Input, f kernels.Format) (on, away devicemap.Bytes, err error) {
	st.Device = device.ID{Kind: device.CPU}
	var backends []kernels.Backend
	for i := range 2 {
		backends = append(backends, &counting{info: device.Info{ID: device.ID{Kind: device.CPU, Index: i}}, layout: y})
	}
	r, err := Load(context.Background(), RunnerConfig{
		Model: m, Checkpoint: ck, Backends: backends, Format: f, sizesOnly: true,
		Plan: devicemap.Plan{
			Stages: []devicemap.Stage{st}, MaxContext: positions,
			MaxSeqs: in.MaxSeqs, MaxTokens: in.MaxTokens, MaxLogits: in.MaxLogits,
		},
	})
	if err != nil {
		return on, away, fmt.Errorf("measure %v: %w", st, err)
	}
	on, away = r.Bytes()[0], r.Away()[0]
	return on, away, r.Close()
}

// zeros is a checkpoint with the tensors of some layers, embedding and head,
// all zeros.
func zeros(m models.Model, dtype dtypes, layers []int) (*loader.Checkpoint, error) {
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
