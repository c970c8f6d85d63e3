package models

import (
	"io/fs"
	"os"

	"infer/runtime/loader"
)

// Report is what can be said about a checkpoint without reading weights.
type Report struct {
	Path   string        `json:"path"`
	Config *ReportConfig `json:"config,omitempty"` // absent for a single file, or when config.json is at fault
	Files  []ReportFile  `json:"files"`
	// Tensors of all files, in the order of their data.
	Tensors []ReportTensor `json:"tensors"`
	Missing []ReportTensor `json:"missing"` // what the model needs and the checkpoint lacks
	Ignored []string       `json:"ignored"` // what of the folder is not used, and why
	Faults  []string       `json:"faults"`  // empty: the checkpoint can be used
}

// ReportConfig is the model that config.json describes.
type ReportConfig struct {
	Architecture string  `json:"architecture"`
	Layers       int     `json:"layers"`
	Hidden       int     `json:"hidden"`
	Intermediate int     `json:"intermediate"`
	Heads        int     `json:"heads"`
	KVHeads      int     `json:"kv_heads"`
	HeadDim      int     `json:"head_dim"`
	Vocab        int     `json:"vocab"`
	MaxPositions int     `json:"max_positions"`
	Tied         bool    `json:"tied"`
	StopIDs      []int32 `json:"stop_ids"`
	Parameters   int64   `json:"parameters"` // of the tensors used
	Bytes        int64   `json:"bytes"`      // of them in the checkpoint
	// Of mixtures of experts; absent in a model without.
	Experts         int `json:"experts,omitempty"`
	ExpertsPerToken int `json:"experts_per_token,omitempty"`
}

// ReportFile is one safetensors file.
type ReportFile struct {
	Path     string            `json:"path"`
	Bytes    int64             `json:"bytes"`
	Tensors  int               `json:"tensors"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ReportTensor is one tensor, there or missing.
type ReportTensor struct {
	Name   string `json:"name"`
	DType  string `json:"dtype,omitempty"`
	Shape  []int  `json:"shape"`
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"` // of its first byte in the file
	Bytes  int64  `json:"bytes,omitempty"`
	Used   bool   `json:"used"` // by the model of config.json
}

// Inspect looks into a model folder, or into one safetensors file. Whatever is
// wrong is in the report's Faults.
func Inspect(path string) Report {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		r := newReport(path)
		f, err := loader.OpenFile(path)
		if err != nil {
			return r.fail(err)
		}
		r.addFile(f, nil)
		return r.fail(f.Close())
	}
	ck, err := loader.Open(path)
	if err != nil {
		return newReport(path).fail(err)
	}
	return inspect(ck)
}

// InspectFS is Inspect for a folder that is the root of fsys.
func InspectFS(fsys fs.FS, name string) Report {
	ck, err := loader.OpenFS(fsys, name)
	if err != nil {
		return newReport(name).fail(err)
	}
	return inspect(ck)
}

// newReport has empty lists rather than none, for JSON.
func newReport(path string) Report {
	return Report{Path: path, Files: []ReportFile{}, Tensors: []ReportTensor{}, Missing: []ReportTensor{}, Ignored: []string{}, Faults: []string{}}
}

func inspect(ck *loader.Checkpoint) Report {
	r := newReport(ck.Name)
	r.Ignored = append(r.Ignored, ck.Ignored...)
	m, err := fromConfig(ck)
	if err != nil {
		r = r.fail(err)
		for _, f := range ck.Files {
			r.addFile(f, nil)
		}
		return r.fail(ck.Close())
	}
	fit := check(m, ck)
	for _, fault := range fit.faults() {
		r = r.fail(fault)
	}
	cfg := m.Config()
	r.Config = &ReportConfig{
		Architecture: cfg.Architecture, Layers: cfg.Layers, Hidden: cfg.Hidden, Intermediate: cfg.Intermediate,
		Heads: cfg.Heads.Q, KVHeads: cfg.Heads.KV, HeadDim: cfg.Heads.Dim, Vocab: cfg.VocabSize,
		MaxPositions: cfg.MaxPositions, Tied: cfg.Tied, StopIDs: cfg.StopIDs,
		Experts: cfg.Experts, ExpertsPerToken: cfg.ExpertsPerToken,
	}
	for _, s := range fit.missing {
		r.Missing = append(r.Missing, ReportTensor{Name: s.Name, Shape: s.Shape})
	}
	for _, f := range ck.Files {
		r.addFile(f, fit.used)
	}
	for _, t := range r.Tensors {
		if t.Used {
			n := int64(1)
			for _, d := range t.Shape {
				n *= int64(d)
			}
			r.Config.Parameters += n
			r.Config.Bytes += t.Bytes
		}
	}
	if _, err := ReadGeneration(ck, cfg); err != nil {
		r = r.fail(err)
	}
	return r.fail(ck.Close())
}

func (r Report) fail(err error) Report {
	if err != nil {
		r.Faults = append(r.Faults, err.Error())
	}
	return r
}

func (r *Report) addFile(f *loader.File, used map[string]bool) {
	r.Files = append(r.Files, ReportFile{f.Path, f.Size, len(f.Tensors), f.Metadata})
	for _, t := range f.Tensors {
		r.Tensors = append(r.Tensors, ReportTensor{t.Name, t.DType.String(), t.Shape, f.Path, t.Offset, t.Bytes, used[t.Name]})
	}
}
