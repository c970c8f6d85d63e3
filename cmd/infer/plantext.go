package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"infer/runtime/devicemap"
)

// barWidth is the characters of a device's bar.
const barWidth = 50

// What a bar is drawn with, by kind of bytes.
var barParts = []struct {
	rune  string
	what  string
	bytes func(b devicemap.Bytes) int64
}{
	{"█", "weights", func(b devicemap.Bytes) int64 { return b.Weights }},
	{"▓", "K/V", func(b devicemap.Bytes) int64 { return b.KV }},
	{"▒", "activations and workspace", func(b devicemap.Bytes) int64 { return b.Activations + b.Workspace }},
	{"░", "reserve", func(b devicemap.Bytes) int64 { return b.Reserve }},
}

// bar draws a device's memory: b of room bytes.
func bar(b devicemap.Bytes, room int64) string {
	var out strings.Builder
	var sum int64
	drawn := 0
	for _, p := range barParts {
		sum += p.bytes(b)
		end := int(float64(sum)/float64(max(room, sum, 1))*barWidth + 0.5)
		out.WriteString(strings.Repeat(p.rune, end-drawn))
		drawn = end
	}
	return out.String() + strings.Repeat("·", barWidth-drawn)
}

// printPlan shows a plan to people.
func printPlan(out io.Writer, r *request, name string, p devicemap.Plan, in devicemap.Input) error {
	c := r.model.Config()
	weights := int64(0)
	for _, id := range p.Devices() {
		weights += p.On(id).Weights
	}
	fmt.Fprintf(out, "%s: %s, %d layers, weights %s", name, c.Architecture, c.Layers, size(weights))
	if f := r.flags.quantize; f != "" && f != "none" {
		fmt.Fprintf(out, " as %s", f)
	}
	fmt.Fprintf(out, ", context %d", p.MaxContext)
	if p.MaxContext < c.MaxPositions {
		fmt.Fprintf(out, " of the model's %d", c.MaxPositions)
	}
	fmt.Fprintf(out, "\n\n")

	for _, d := range in.Devices {
		id := d.Info.ID
		room := roomOf(d)
		b := p.On(id)
		if b.Total() == 0 {
			fmt.Fprintf(out, "%-7s not used (%s)\n", id, d.Info.Name)
			continue
		}
		fmt.Fprintf(out, "%-7s %s %s of %s  %s\n", id, bar(b, room), size(b.Used()), size(room), d.Info.Name)
	}
	fmt.Fprintf(out, "        ")
	for _, part := range barParts {
		fmt.Fprintf(out, "%s %s  ", part.rune, part.what)
	}
	fmt.Fprintf(out, "· free\n\n")

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "device\tlayers\tweights\tK/V\tactivations\tworkspace\ta step\t\n")
	row := func(what, layers string, b devicemap.Bytes, seconds string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", what, layers, size(b.Weights), size(b.KV), size(b.Activations), size(b.Workspace), seconds)
	}
	for _, s := range p.Stages {
		row(s.Device.String(), layersOf(s), s.Bytes, seconds(s.Seconds))
		if s.Split() {
			row(s.ExpertsOn.String(), fmt.Sprintf("experts of %d-%d", s.Lo, s.Hi-1), s.Away, "")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	q := p.Predicted
	fmt.Fprintf(out, "\nK/V     %d blocks of %d tokens: %s of %d tokens at once\n", p.Blocks, in.BlockSize, plural(p.Blocks*in.BlockSize/max(p.MaxContext, 1), "sequence"), p.MaxContext)
	fmt.Fprintf(out, "decode  %s a token for one sequence; %s for %s, %.0f tokens/s (predicted, %d tokens behind each)\n",
		seconds(q.Single), seconds(q.TPOT), plural(q.Batch, "sequence"), q.Throughput(), q.Context)
	fmt.Fprintf(out, "prefill %s to the first token of a prompt of %d\n", seconds(q.TTFT), q.Prompt)
	if p.MicroBatches > 1 {
		fmt.Fprintf(out, "        %d micro-batches in flight keep every device busy\n", p.MicroBatches)
	}
	fmt.Fprintf(out, "\nwhy\n")
	for _, reason := range p.Reasons {
		fmt.Fprintf(out, "  - %s\n", reason)
	}
	return nil
}

// layersOf a stage, like "embed 0-15 head".
func layersOf(s devicemap.Stage) string {
	_, text, _ := strings.Cut(s.String(), ": ")
	text, _, _ = strings.Cut(text, " (experts")
	return strings.NewReplacer("embedding", "embed", "layers ", "", "layer ", "").Replace(text)
}

// roomOf is what may be used of a device, with its reserve.
func roomOf(d devicemap.Device) int64 {
	if d.Limit > 0 && (d.Info.FreeBytes == 0 || d.Limit < d.Info.FreeBytes) {
		return d.Limit
	}
	return d.Info.FreeBytes
}

// seconds is like "13.2 ms".
func seconds(s float64) string {
	switch {
	case s < 0.01:
		return fmt.Sprintf("%.2f ms", s*1000)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1000)
	}
	return fmt.Sprintf("%.1f s", s)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
