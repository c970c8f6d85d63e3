package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"infer/models"
	"infer/models/tiny"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels/cuda"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// request is all that a plan comes of: a model, a machine and what the user
// wants of them.
type request struct {
	model   models.Model
	sizes   *engine.Sizer
	stored  tensor.DType // of weights that are not here
	flags   computeFlags
	batch   int    // sequences of the whole context that must fit; 0: one
	machine string // of --gpus; "": places are this machine's
	// planning: infer plan asks, whose flags suggestions may name.
	planning bool
	whatIf
}

// parts reads --device-map: "auto", a map in words, a JSON file of modules, or
// such JSON itself. nil: the planner decides.
func (f *computeFlags) parts(c models.Config) ([]devicemap.Part, error) {
	text := strings.TrimSpace(f.deviceMap)
	var raw []byte
	switch {
	case strings.HasPrefix(text, "{"):
		raw = []byte(text)
	case strings.HasSuffix(text, ".json"):
		info, err := os.Stat(text)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxMapFile) {
			err = fmt.Errorf("%s: not a regular file of at most %d bytes", text, maxMapFile)
		}
		if err == nil {
			raw, err = os.ReadFile(text)
		}
		if err != nil {
			return nil, usagef("--device-map: %w", err)
		}
	}
	var parts []devicemap.Part
	var err error
	if raw != nil {
		parts, err = devicemap.ParseModules(raw, c.Layers, c.Tied, c.Experts > 0)
	} else {
		parts, err = devicemap.Parse(text, c.Layers)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return parts, nil
}

const maxMapFile = 8 << 20

// mapsModules tells whether --device-map is JSON.
func (f *computeFlags) mapsModules() bool {
	return strings.HasPrefix(strings.TrimSpace(f.deviceMap), "{") || strings.HasSuffix(f.deviceMap, ".json")
}

// plan makes the plan, and the input that it comes of.
func (r *request) plan() (devicemap.Plan, devicemap.Input, error) {
	var none devicemap.Input
	places := append([]engine.Place(nil), r.places...)
	if err := r.flags.limit(places, r.imagined); err != nil {
		return devicemap.Plan{}, none, err
	}
	in, err := r.sizes.Input(places, engine.PlanOptions{
		Format: r.flags.format(), MaxContext: r.flags.ctx, MaxSeqs: max(r.flags.maxSeqs, r.batch), Stored: r.stored,
	})
	if err != nil {
		return devicemap.Plan{}, none, err
	}
	in.Links, in.FullSeqs, in.Batch = r.links, r.batch, r.batch
	if n := r.flags.gpuLayers; n >= 0 {
		in.GPULayers = &n
	}
	parts, err := r.flags.parts(r.model.Config())
	if err != nil {
		return devicemap.Plan{}, none, err
	}
	if parts != nil {
		if r.flags.gpuLayers >= 0 {
			return devicemap.Plan{}, none, usagef("--gpu-layers: the --device-map says already where layers run")
		}
		p, err := devicemap.Fixed(in, parts)
		return p, in, r.judge(p, err)
	}
	p, err := devicemap.Auto(in)
	return p, in, r.judge(p, err)
}

// judge refuses a plan that could not be run, and tells a wrong use of flags
// from what does not fit.
func (r *request) judge(p devicemap.Plan, err error) error {
	switch {
	case errors.Is(err, devicemap.ErrDoesNotFit):
		return err
	case err != nil:
		return usageError{err}
	}
	used := p.Devices()
	gpu := slices.IndexFunc(used, func(id device.ID) bool { return id.Kind == device.CUDA })
	switch {
	case gpu < 0:
	case r.flags.kvCache == "q8":
		return usagef("--kv-cache q8: the plan has stages on %v, and GPUs hold K/V as activations; leave it out, or use --device-map cpu", used[gpu])
	case r.flags.precision == string(cuda.BF16) && slices.ContainsFunc(used, func(id device.ID) bool { return id.Kind == device.CPU }):
		return usagef("--precision bf16: the plan has stages on the CPU, which computes in f32; use --precision auto")
	}
	return nil
}

// leavesGPUs tells whether p, which nobody asked to be so, has GPUs that might
// be used and uses none: they have no room, as a rule.
func (r *request) leavesGPUs(p devicemap.Plan) bool {
	if r.flags.gpuLayers == 0 || !r.mapIsAuto() {
		return false
	}
	onGPU := func(id device.ID) bool { return id.Kind == device.CUDA }
	return slices.ContainsFunc(r.places, func(at engine.Place) bool { return onGPU(at.Info.ID) }) && !slices.ContainsFunc(p.Devices(), onGPU)
}

// openPlanned reads what planning needs of a MODEL: the headers of a whole
// checkpoint, or config.json where there are no weights. ck is nil then.
func openPlanned(src source) (m models.Model, ck *loader.Checkpoint, stored tensor.DType, err error) {
	if src.name == tiny.Name || hasWeights(src.fs) {
		if ck, err = src.checkpoint(false); err != nil {
			return nil, nil, 0, err
		}
		if m, err = models.Open(ck); err != nil {
			_ = ck.Close()
			return nil, nil, 0, err
		}
		return m, ck, 0, nil
	}
	raw, err := fs.ReadFile(src.fs, loader.ConfigName)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", src.path, err)
	}
	// A checkpoint without tensors stands for the one that is not here.
	bare, err := loader.OpenFS(fstest.MapFS{
		loader.ConfigName: {Data: raw}, loader.SingleName: {Data: []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")},
	}, src.path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer bare.Close()
	if m, err = models.FromConfig(bare); err != nil {
		return nil, nil, 0, err
	}
	stored, err = storedType(raw)
	return m, nil, stored, err
}

// hasWeights tells whether every file of weights is there.
func hasWeights(fsys fs.FS) bool {
	if _, err := fs.Stat(fsys, loader.SingleName); err == nil {
		return true
	}
	raw, err := fs.ReadFile(fsys, loader.IndexName)
	if err != nil {
		return false
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(raw, &index) != nil {
		return true // let loading say what is wrong
	}
	for _, file := range index.WeightMap {
		if _, err := fs.Stat(fsys, file); err != nil {
			return false
		}
	}
	return true
}

// storedType is what config.json says weights are stored as; BF16 when it does
// not say.
func storedType(raw []byte) (tensor.DType, error) {
	var c struct {
		DType      string `json:"dtype"`
		TorchDType string `json:"torch_dtype"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return 0, fmt.Errorf("%s: %w", loader.ConfigName, err)
	}
	name := c.DType
	if name == "" {
		name = c.TorchDType
	}
	switch name {
	case "", "bfloat16", "auto":
		return tensor.BF16, nil
	case "float16":
		return tensor.F16, nil
	case "float32":
		return tensor.F32, nil
	}
	return 0, fmt.Errorf("%s: weights of type %.40q: cannot compute with them", loader.ConfigName, name)
}

// plannedSource finds the MODEL of infer plan, which may also be a config.json.
func plannedSource(arg string, resolve func() (source, error)) (source, error) {
	info, err := os.Stat(arg)
	if err != nil || info.IsDir() {
		return resolve()
	}
	raw, err := os.ReadFile(arg)
	if err != nil {
		return source{}, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return source{}, fmt.Errorf("%s is a file: MODEL is a folder, a config.json, or a repo id like org/name", arg)
	}
	name := strings.TrimSuffix(filepath.Base(arg), ".json")
	if name == "config" {
		if abs, err := filepath.Abs(arg); err == nil {
			name = filepath.Base(filepath.Dir(abs))
		}
	}
	path := arg
	if filepath.Base(arg) == loader.ConfigName {
		path = filepath.Dir(arg)
	}
	return source{name: name, path: path, fs: fstest.MapFS{loader.ConfigName: {Data: raw}}}, nil
}

// gpuNames lists the machine's GPUs as --gpus takes them.
func gpuNames(places []engine.Place) []string {
	var names []string
	for _, p := range places {
		if p.Info.ID.Kind == device.CUDA {
			names = append(names, p.Info.Name)
		}
	}
	return names
}
