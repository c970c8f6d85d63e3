package models

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// fit is how a checkpoint's tensors agree with what a model needs.
type fit struct {
	name    string // of the checkpoint
	used    map[string]bool
	missing []TensorSpec
	wrong   []error // shape or dtype
	foreign []error // not used, although the results depend on them
}

func (f *fit) faults() []error {
	var out []error
	for _, t := range f.missing {
		out = append(out, fmt.Errorf("%s: tensor %.120q of shape %v is missing, which %s calls for", f.name, t.Name, t.Shape, loader.ConfigName))
	}
	return append(append(out, f.wrong...), f.foreign...)
}

// layerIn finds the number of the decoder layer in a tensor's name.
var layerIn = regexp.MustCompile(`(?:^|\.)layers\.(\d+)\.`)

// check compares the tensors that the model lists with the checkpoint's.
func check(m Model, ck *loader.Checkpoint) *fit {
	f := &fit{name: ck.Name, used: map[string]bool{}}
	cfg := m.Config()
	if cfg.Layers > ck.Len() { // before anything is made per layer
		f.foreign = append(f.foreign, fmt.Errorf("%s: num_hidden_layers is %d, but the checkpoint has only %d tensors",
			filepath.Join(ck.Name, loader.ConfigName), cfg.Layers, ck.Len()))
		return f
	}
	for _, want := range m.Tensors() {
		f.used[want.Name] = true
		t, ok := ck.Tensor(want.Name)
		switch {
		case !ok:
			f.missing = append(f.missing, want)
		case !slices.Equal(t.Shape, want.Shape):
			f.wrong = append(f.wrong, fmt.Errorf("%s: tensor %.120q has shape %v, but %s calls for %v", t.File(), t.Name, t.Shape, loader.ConfigName, want.Shape))
		case !computable(t.DType):
			f.wrong = append(f.wrong, fmt.Errorf("%s: tensor %.120q is %v: cannot compute with it, convert the checkpoint to BF16, F16 or F32", t.File(), t.Name, t.DType))
		}
	}
	for _, file := range ck.Files {
		for _, t := range file.Tensors {
			if f.used[t.Name] {
				continue
			}
			if err := foreign(t, cfg, f.used); err != nil {
				f.foreign = append(f.foreign, err)
			}
		}
	}
	return f
}

func computable(d tensor.DType) bool {
	return d == tensor.F32 || d == tensor.F16 || d == tensor.BF16 || d == tensor.F64
}

// foreign tells why a tensor that the model does not use means that the model
// is another one than config.json says, so that running it without would be
// wrong: a layer too many, the bias of a weight in use, a further norm.
// Other tensors (stored rotary tables, heads for other tasks) do no harm.
func foreign(t *loader.Tensor, cfg Config, used map[string]bool) error {
	layer := layerIn.FindStringSubmatch(t.Name)
	if layer != nil {
		if n, err := strconv.Atoi(layer[1]); err != nil || n >= cfg.Layers {
			return fmt.Errorf("%s: tensor %.120q is of layer %.20s, but num_hidden_layers is %d", t.File(), t.Name, layer[1], cfg.Layers)
		}
	}
	base, isBias := strings.CutSuffix(t.Name, ".bias")
	if isBias && used[base+".weight"] || layer != nil && strings.HasSuffix(t.Name, "norm.weight") {
		return fmt.Errorf("%s: tensor %.120q has no place in the model that %s describes (%s): results would be wrong without it", t.File(), t.Name, loader.ConfigName, cfg.Architecture)
	}
	return nil
}
