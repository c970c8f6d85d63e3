package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"infer/runtime/device"
	"infer/runtime/kernels/cuda"
	"infer/runtime/transfer"
)

// newProbe is the command that probes run in: a link may end its process.
func newProbe() *cobra.Command {
	var simulate, pairs string
	var soak time.Duration
	cmd := &cobra.Command{
		Use: "__probe", Hidden: true,
		Short: "Probe links between GPUs (run by other commands)",
		Args:  argsExactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Who asked may be gone: that must not look like a link's doing.
			signal.Ignore(syscall.SIGPIPE)
			list, err := parsePairs(pairs)
			if err != nil {
				return err
			}
			gpus, err := cuda.Open(cuda.Options{Simulate: simulate})
			if err != nil {
				return err
			}
			// Nothing is closed: the process ends, and a link may hang.
			p := transfer.Probe{Links: gpus.Links(), Soak: soak}
			if p.Store, err = linkStore(gpus, simulate); err != nil {
				p.Store = nil // the one who asked has been told
			}
			if simulate != "" {
				p.Patience = 5 * time.Second
			}
			for _, pair := range list {
				for _, id := range []device.ID{pair.From, pair.To} {
					b, err := gpus.Backend(id.Index)
					if err != nil {
						return err
					}
					p.Add(b)
				}
			}
			if err := p.Run(cmd.Context(), list, cmd.OutOrStdout()); err != nil || gpus.Machine() == nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(transfer.Line{Modelled: gpus.Machine().Time().Seconds()})
		},
	}
	cmd.Flags().StringVar(&simulate, "simulate", "", "")
	cmd.Flags().StringVar(&pairs, "pairs", "", "")
	cmd.Flags().DurationVar(&soak, "soak", 0, "")
	return cmd
}

func parsePairs(text string) ([]transfer.Pair, error) {
	var list []transfer.Pair
	for entry := range strings.SplitSeq(text, ",") {
		a, b, ok := strings.Cut(entry, ">")
		from, err1 := strconv.Atoi(a)
		to, err2 := strconv.Atoi(b)
		if !ok || err1 != nil || err2 != nil || from == to {
			return nil, usagef("--pairs %s: want 0>1,1>0", text)
		}
		gpu := func(i int) device.ID { return device.ID{Kind: device.CUDA, Index: i} }
		list = append(list, transfer.Pair{From: gpu(from), To: gpu(to)})
	}
	return list, nil
}

// probeChild runs this program's hidden command.
func probeChild(simulate string, more ...string) transfer.Spawn {
	return func(ctx context.Context, pairs []transfer.Pair, emit func([]byte)) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		var list []string
		for _, p := range pairs {
			list = append(list, fmt.Sprintf("%d>%d", p.From.Index, p.To.Index))
		}
		args := append([]string{"__probe", "--pairs", strings.Join(list, ",")}, more...)
		if simulate != "" {
			args = append(args, "--simulate", simulate)
		}
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Args[0] = os.Args[0] // which says in tests that this program is meant
		cmd.WaitDelay = time.Second
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			emit(lines.Bytes())
		}
		err = errors.Join(lines.Err(), cmd.Wait())
		if line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); err != nil && line != "" {
			err = fmt.Errorf("%w: %.300s", err, line)
		}
		return err
	}
}
