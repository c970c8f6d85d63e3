package api

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"time"
)

// marshal writes v as JSON that can stand in one line of any protocol: no raw
// character that some reader takes for a line break.
func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v, jsontext.EscapeForJS(true), jsontext.AllowInvalidUTF8(true),
		json.Deterministic(true), json.FormatNilMapAsNull(true))
	if err != nil {
		return nil, err
	}
	// U+0085 is a line break to Python's splitlines.
	return bytes.ReplaceAll(b, []byte("\u0085"), []byte(`\u0085`)), nil
}

// eventWriter writes a stream of server-sent events. The header goes out with
// the first event, so that an early failure still has its real status.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration // for one write: a reader that takes nothing is given up
	open    bool
	buf     []byte
}

func newEventWriter(w http.ResponseWriter, timeout time.Duration) *eventWriter {
	return &eventWriter{w: w, rc: http.NewResponseController(w), timeout: timeout}
}

// data adds one event to what the next flush sends.
func (e *eventWriter) data(v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	e.raw(b)
	return nil
}

func (e *eventWriter) raw(b []byte) {
	e.buf = append(e.buf, "data: "...)
	e.buf = append(e.buf, b...)
	e.buf = append(e.buf, "\n\n"...)
}

// comment adds a line that readers skip; it keeps proxies from giving up.
func (e *eventWriter) comment(text string) {
	e.buf = append(e.buf, ": "...)
	e.buf = append(e.buf, text...)
	e.buf = append(e.buf, "\n\n"...)
}

// flush sends what was added.
func (e *eventWriter) flush() error {
	if len(e.buf) == 0 {
		return nil
	}
	if !e.open {
		e.open = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	// Not every writer has deadlines (tests, HTTP/1.0 shims); then none applies.
	_ = e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	if err != nil {
		return err
	}
	return e.rc.Flush()
}
