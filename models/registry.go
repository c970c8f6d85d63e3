package models

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"infer/runtime/loader"
)

// Family is what a family package registers.
type Family struct {
	Architectures []string // as in config.json's architectures: "LlamaForCausalLM"
	ModelTypes    []string // as in its model_type: "llama"
	// New makes the model that the config describes. The checkpoint only
	// tells which tensors there are: all that the model lists is checked by
	// the caller.
	New func(c *ConfigFile, ck *loader.Checkpoint) (Model, error)
}

var families []Family

// Register adds a family; family packages call it from init. Importing
// infer/models/all registers every one.
func Register(f Family) { families = append(families, f) }

// Supported lists the architectures that can be opened, sorted.
func Supported() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.Architectures...)
	}
	slices.Sort(names)
	return names
}

// Open makes the model that the checkpoint's config.json describes and checks
// that the checkpoint has exactly the weights it needs. No weight is read,
// with one exception: a config that ties embedding and output head beside a
// checkpoint that has both, which are then compared.
func Open(ck *loader.Checkpoint) (Model, error) {
	m, err := fromConfig(ck)
	if err != nil {
		return nil, err
	}
	if faults := check(m, ck).faults(); len(faults) > 0 {
		if more := len(faults) - 1; more > 0 {
			return nil, fmt.Errorf("%w (faults like this: %d more, which infer inspect lists)", faults[0], more)
		}
		return nil, faults[0]
	}
	return m, nil
}

// FromConfig makes the model that the checkpoint's config.json describes
// without holding the tensors against it: for planning where there are no
// weights. What it gives must not be loaded from ck.
func FromConfig(ck *loader.Checkpoint) (Model, error) { return fromConfig(ck) }

func fromConfig(ck *loader.Checkpoint) (Model, error) {
	c, err := ParseConfig(filepath.Join(ck.Name, loader.ConfigName), ck.Config)
	if err != nil {
		return nil, err
	}
	f, err := find(c)
	if err != nil {
		return nil, err
	}
	m, err := f.New(c, ck)
	if err != nil {
		return nil, err
	}
	return m, c.Err()
}

// find picks the family by architectures[0], or by model_type in files that
// have no architectures. Where both are given they must agree.
func find(c *ConfigFile) (*Family, error) {
	archs, modelType := c.Strings("architectures"), c.String("model_type", "")
	if c.Err() != nil {
		return nil, c.Err()
	}
	supported := strings.Join(Supported(), ", ")
	for i := range families {
		f := &families[i]
		switch {
		case len(archs) > 0 && !slices.Contains(f.Architectures, archs[0]),
			len(archs) == 0 && !slices.Contains(f.ModelTypes, modelType):
			continue
		case modelType != "" && !slices.Contains(f.ModelTypes, modelType):
			return nil, fmt.Errorf("%s: model_type is %.80q, but architectures[0] %.80q is of type %s",
				c.file, modelType, archs[0], strings.Join(f.ModelTypes, ", "))
		}
		return f, nil
	}
	switch {
	case len(archs) > 0:
		return nil, fmt.Errorf("%s: architecture %.80q (model_type %.80q) is not supported; supported are %s", c.file, archs[0], modelType, supported)
	case modelType != "":
		return nil, fmt.Errorf("%s: model_type %.80q is not supported, and architectures is missing; supported are %s", c.file, modelType, supported)
	}
	return nil, fmt.Errorf("%s: architectures and model_type are missing: cannot tell what model this is; supported are %s", c.file, supported)
}
