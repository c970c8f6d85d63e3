package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLogger writes for people on a terminal and JSON lines elsewhere, unless
// format says which: "auto", "human" or "json".
func newLogger(w io.Writer, format string) (zerolog.Logger, error) {
	human := isTerminal(w)
	switch format {
	case "auto":
	case "human":
		human = true
	case "json":
		human = false
	default:
		return zerolog.Nop(), usagef("--log-format %s: want auto, human or json", format)
	}
	if human {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w) || os.Getenv("NO_COLOR") != ""}
	}
	return zerolog.New(w).With().Timestamp().Logger(), nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
