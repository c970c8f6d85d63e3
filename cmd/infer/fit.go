package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"infer/runtime/device"
	"infer/runtime/devicemap"
)

// suggestion is a way to make a model fit that does not.
type suggestion struct {
	Flags string `json:"flags"` // to add, or to give instead
	What  string `json:"what"`
	// Set is Flags taken apart: flag without dashes, and value.
	Set [][2]string `json:"-"`
}

// attempt is a suggestion that has not been tried yet.
type attempt struct {
	what   string
	kind   string // of GPU, if it adds some
	flags  [][2]string
	change func(r *request) error
}

// wanted is how many suggestions there are.
const wanted = 3

// suggest finds the cheapest ways to make the request fit. Each has been
// planned: when followed, it fits. Cheapest is what costs quality and money
// least: another map, a shorter context or smaller batch, weights in fewer bits,
// memory that is there but not allowed, a GPU more.
func suggest(r *request) []suggestion {
	var found []suggestion
	var kindsFound []string // more of the same is no further way
	// Of each group the first that fits: its attempts go from little to much.
	for _, group := range r.attempts() {
		for _, a := range group {
			try := *r
			try.places = slices.Clone(r.places)
			if a.kind != "" && slices.Contains(kindsFound, a.kind) || a.change(&try) != nil {
				continue
			}
			if _, _, err := try.plan(); err != nil {
				continue
			}
			if try.flags.ctx == 0 { // a context of a few tokens is no way out
				try.flags.ctx = min(devicemap.PlanContext, r.model.Config().MaxPositions)
				if _, _, err := try.plan(); err != nil {
					continue
				}
			}
			s := suggestion{What: a.what, Set: a.flags}
			for _, f := range a.flags {
				s.Flags += " --" + f[0] + " " + f[1]
			}
			s.Flags = strings.TrimSpace(s.Flags)
			found, kindsFound = append(found, s), append(kindsFound, a.kind)
			break
		}
		if len(found) == wanted {
			break
		}
	}
	return found
}

// attempts by group, the cheapest group first.
func (r *request) attempts() [][]attempt {
	groups := [][]attempt{
		r.automatic(), r.fewerOnGPUs(), r.shorter(nil), r.smallerBatch(), r.fewerSeqs(), r.fewerBits("q8"), r.fewerBits("q4"), r.lessReserve(), r.allowed(),
	}
	for count := 1; count <= 16; count *= 2 {
		groups = append(groups, r.moreGPUs(count))
		if count == 1 {
			groups = append(groups, r.moreRAM())
		}
	}
	return append(groups, r.shorter(r.fewerBits("q4")))
}

// automatic lets the planner decide in place of the user's map.
func (r *request) automatic() []attempt {
	if r.mapIsAuto() {
		return nil
	}
	return []attempt{{
		what:   "layers where there is memory for them",
		flags:  [][2]string{{"device-map", "auto"}},
		change: func(r *request) error { r.flags.deviceMap = "auto"; return nil },
	}}
}

// mapIsAuto tells whether no map was given.
func (r *request) mapIsAuto() bool { return r.flags.deviceMap == "" || r.flags.deviceMap == "auto" }

// fewerOnGPUs takes layers off the GPUs where the user said how many are there.
func (r *request) fewerOnGPUs() []attempt {
	var list []attempt
	asked := min(r.flags.gpuLayers, r.model.Config().Layers)
	for n := asked - 1; n >= 0; n -= max(1, asked/16) {
		list = append(list, attempt{
			what:   fmt.Sprintf("%s on GPUs instead of %d", plural(n, "layer"), asked),
			flags:  [][2]string{{"gpu-layers", fmt.Sprint(n)}},
			change: func(r *request) error { r.flags.gpuLayers = n; return nil },
		})
	}
	return list
}

// shorter contexts, beside other changes.
func (r *request) shorter(with []attempt) []attempt {
	context, longest := r.flags.ctx, r.flags.ctx/2
	if context == 0 {
		// K/V is cut to what fits by itself; what grows with the context beside
		// it is not.
		context = r.model.Config().MaxPositions
		longest = min(context/2, devicemap.PlanContext)
	}
	var list []attempt
	for n := longest; n >= 256 && (r.flags.ctx > 0 || n == longest); n /= 2 {
		a := attempt{
			what:  fmt.Sprintf("a context of %d tokens instead of %d", n, context),
			flags: [][2]string{{"ctx", fmt.Sprint(n)}},
			change: func(r *request) error {
				r.flags.ctx = n
				return nil
			},
		}
		for _, w := range with {
			own := a.change
			a.what += ", and " + w.what
			a.flags = append(slices.Clone(w.flags), a.flags...)
			a.change = func(r *request) error { return errors.Join(own(r), w.change(r)) }
		}
		list = append(list, a)
	}
	return list
}

func (r *request) smallerBatch() []attempt {
	var list []attempt
	for n := r.batch / 2; n >= 1; n /= 2 {
		list = append(list, attempt{
			what:   fmt.Sprintf("room for %s instead of %d", plural(n, "sequence"), r.batch),
			flags:  [][2]string{{"batch", fmt.Sprint(n)}},
			change: func(r *request) error { r.batch = n; return nil },
		})
	}
	return list
}

// fewerSeqs bounds what a step takes beside weights and K/V.
func (r *request) fewerSeqs() []attempt {
	var list []attempt
	for n := r.flags.maxSeqs / 2; n >= max(r.batch, 1); n /= 2 {
		list = append(list, attempt{
			what:   fmt.Sprintf("%s at once instead of %d", plural(n, "sequence"), r.flags.maxSeqs),
			flags:  [][2]string{{"max-seqs", fmt.Sprint(n)}},
			change: func(r *request) error { r.flags.maxSeqs = n; return nil },
		})
	}
	return list
}

// lessReserve leaves less memory free than the user asked for.
func (r *request) lessReserve() []attempt {
	if r.flags.reserve == "" {
		return nil
	}
	const little = "128MiB"
	return []attempt{{
		what:   "less memory left free",
		flags:  [][2]string{{"reserve", little}},
		change: func(r *request) error { r.flags.reserve = little; return nil },
	}}
}

func (r *request) fewerBits(format string) []attempt {
	if now := r.flags.quantize; now == format || now == "q4" || len(r.places) == 0 {
		return nil
	}
	return []attempt{{
		what:   fmt.Sprintf("weights in %s bits", format[1:]),
		flags:  [][2]string{{"quantize", format}},
		change: func(r *request) error { r.flags.quantize = format; return nil },
	}}
}

// allowed lifts limits of the user's own.
func (r *request) allowed() []attempt {
	if r.flags.maxMemory == "" {
		return nil
	}
	var list []attempt
	for _, entry := range strings.Split(r.flags.maxMemory, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(entry), "=")
		for _, p := range r.places {
			if p.Info.ID.String() != name || p.Info.TotalBytes == 0 || r.imagined && p.Info.ID.Kind == device.CPU {
				continue
			}
			var rest []string
			for _, other := range strings.Split(r.flags.maxMemory, ",") {
				if !strings.HasPrefix(strings.TrimSpace(other), name+"=") {
					rest = append(rest, strings.TrimSpace(other))
				}
			}
			free := p.Info.TotalBytes - p.Info.TotalBytes/8
			limits := strings.Join(append(rest, fmt.Sprintf("%s=%dMiB", name, free>>20)), ",")
			list = append(list, attempt{
				what:  fmt.Sprintf("more of %s's memory, which has %s", name, size(p.Info.TotalBytes)),
				flags: [][2]string{{"max-memory", limits}},
				change: func(r *request) error {
					r.flags.maxMemory = limits
					for i := range r.places {
						if r.places[i].Info.ID == p.Info.ID { // what the limit hides
							r.places[i].Info.FreeBytes = max(free, p.Info.FreeBytes)
						}
					}
					return nil
				},
			})
		}
	}
	return list
}

// kinds of GPU to suggest, beside what is there: common ones, by memory.
var kinds = []string{
	"RTX-3060", "RTX-4060-Ti", "RTX-4090", "RTX-5090", "RTX-6000-Ada", "RTX-PRO-6000", "H200", "B200",
}

// moreGPUs adds so many of the kind that is there, or of a common one.
func (r *request) moreGPUs(count int) []attempt {
	here := gpuNames(r.places)
	names := slices.Clone(kinds)
	if len(here) > 0 {
		names = slices.Insert(names, 0, short(here[len(here)-1]))
	}
	var list []attempt
	for _, name := range slices.Compact(names) {
		all := slices.Clone(here)
		for range count {
			all = append(all, name)
		}
		machine := machineText(all)
		a := attempt{
			what:   fmt.Sprintf("%d more %s", count, strings.ReplaceAll(name, "-", " ")),
			kind:   name,
			flags:  [][2]string{{"gpus", machine}},
			change: func(r *request) error { return r.use(machine) },
		}
		for _, w := range r.automatic() { // a map that was given does not name them
			own := a.change
			a.flags = append(a.flags, w.flags...)
			a.change = func(r *request) error { return errors.Join(own(r), w.change(r)) }
		}
		list = append(list, a)
	}
	return list
}

// moreRAM gives the CPU more memory, on a machine that need not exist.
func (r *request) moreRAM() []attempt {
	var list []attempt
	for gib := 32; gib <= 2048 && r.imagined; gib *= 2 {
		limit := fmt.Sprintf("cpu=%dGiB", gib)
		for _, other := range strings.Split(r.flags.maxMemory, ",") {
			if other = strings.TrimSpace(other); other != "" && !strings.HasPrefix(other, "cpu=") {
				limit += "," + other
			}
		}
		list = append(list, attempt{
			what:   fmt.Sprintf("%d GiB of memory for the CPU", gib),
			flags:  [][2]string{{"max-memory", limit}},
			change: func(r *request) error { r.flags.maxMemory = limit; return nil },
		})
	}
	return list
}

// machineText is GPUs as --gpus takes them.
func machineText(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		n := i
		for n < len(names) && short(names[n]) == short(names[i]) {
			n++
		}
		parts = append(parts, fmt.Sprintf("%dx%s", n-i, short(names[i])))
		i = n
	}
	return strings.Join(parts, ",")
}

// short is a GPU's name as people write it: "RTX-4090".
func short(name string) string {
	for _, w := range []string{"NVIDIA ", "GeForce ", "Tesla "} {
		name = strings.TrimPrefix(name, w)
	}
	return strings.ReplaceAll(name, " ", "-")
}

// use makes the request one for another machine, with the same CPU.
func (r *request) use(machine string) error {
	w, err := describe(machine, &r.flags)
	if err != nil {
		return err
	}
	for _, p := range r.places {
		if p.Info.ID.Kind == device.CPU {
			w.places[len(w.places)-1] = p
			break
		}
	}
	r.machine, r.whatIf = machine, w
	return nil
}

// explain adds the ways to make it fit to an error that says it does not.
func (r *request) explain(err error) error {
	if !errors.Is(err, devicemap.ErrDoesNotFit) {
		return err
	}
	ways := suggest(r)
	if len(ways) == 0 {
		return err
	}
	var b strings.Builder
	for _, s := range ways {
		if s.Set[0][0] == "gpus" && !r.planning {
			fmt.Fprintf(&b, "\n  %s   (infer plan %s)", s.What, s.Flags)
			continue
		}
		fmt.Fprintf(&b, "\n  %s   (%s)", s.Flags, s.What)
	}
	return fmt.Errorf("%w\nWays to make it fit, the cheapest first:%s", err, b.String())
}
