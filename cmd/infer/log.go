package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// newLogger writes for people on a terminal and JSON lines elsewhere, unless
// format says which: "auto", "human" or "json".
func newLogger(w io.Writer, format string) (zerolog.Logger, error) {
	switch format {
	case "auto", "human", "json":
	default:
		return zerolog.Nop(), usagef("--log-format %s: want auto, human or json", format)
	}
	if forPeople(w, format) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w) || os.Getenv("NO_COLOR") != ""}
	}
	// Debug lines are health checks and scrapes, several a minute.
	return zerolog.New(w).Level(zerolog.InfoLevel).With().Timestamp().Logger(), nil
}

func forPeople(w io.Writer, format string) bool {
	return format == "human" || format == "auto" && isTerminal(w)
}

// commandLogger is for commands other than serve: standard error gets what takes
// long or was tried again, and nothing when all goes well.
func commandLogger(cmd *cobra.Command) zerolog.Logger {
	log, _ := newLogger(cmd.ErrOrStderr(), "auto") // a format that is always known
	return log
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
