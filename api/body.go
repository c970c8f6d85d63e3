package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"
)

// withBody reads the body as one JSON object and hands it to decode. What it
// takes in memory is accounted for until decode returns.
func (s *Server) withBody(c *gin.Context, decode func(*fields) error) error {
	length := c.Request.ContentLength
	if length > s.limits.Body {
		swallow(c)
		return errBodyTooLarge(s.limits.Body)
	}
	held := &accounted{budget: s.bodies, step: min(64<<10, s.limits.Body)}
	defer held.release()

	body, err := s.readBody(c, held)
	if err != nil {
		return err
	}
	v, err := parseValue(body)
	if err != nil {
		return err
	}
	f, err := readObject(v)
	if err != nil {
		return err
	}
	if err := decode(f); err != nil {
		return err
	}
	s.noteUnknown(c.FullPath(), f.unknown())
	return nil
}

// accounted takes what is read through it from a budget, as it arrives: a
// client that announces much and sends nothing holds nothing.
type accounted struct {
	io.Reader
	budget           *semaphore.Weighted
	step, used, held int64
}

func (a *accounted) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.used += int64(n)
	if more := a.used - a.held; more > 0 {
		more = (more + a.step - 1) / a.step * a.step
		if !a.budget.TryAcquire(more) {
			return n, errQueueFull()
		}
		a.held += more
	}
	return n, err
}

func (a *accounted) release() { a.budget.Release(a.held) }

func (s *Server) readBody(c *gin.Context, held *accounted) ([]byte, error) {
	held.Reader = http.MaxBytesReader(c.Writer, c.Request.Body, s.limits.Body)
	body, err := io.ReadAll(held)
	if err == nil {
		// From here on a read watches for the client's leaving, however long
		// the answer takes.
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{})
		return body, nil
	}
	// What is left of the body is not waited for.
	c.Header("Connection", "close")
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		swallow(c)
		return nil, errBodyTooLarge(e.Limit)
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		return nil, e
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errTimeout(s.limits.BodyTimeout)
	}
	return nil, badBody("reading the request body: %v", err)
}

// swallow reads on, for a while, what a client still sends of a body that is
// refused: one that writes before it reads would see a broken connection and
// not the answer.
func swallow(c *gin.Context) {
	const most, longest = 128 << 20, 10 * time.Second
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(longest))
	_, _ = io.CopyN(io.Discard, c.Request.Body, most)
}

// boundBody gives a request's body a time to arrive in. It holds for routes
// that do not read it too: the connection is not reused before it was read.
func (s *Server) boundBody(c *gin.Context) {
	if c.Request.ContentLength != 0 {
		// Writers without deadlines (in tests) read without one.
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(s.limits.BodyTimeout))
	}
}

// seenNames remembers a bounded number of names.
type seenNames struct {
	mu    sync.Mutex
	names map[string]bool
}

// first tells whether name is seen for the first time.
func (s *seenNames) first(name string) bool {
	const most, longest = 256, 64
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(name) > longest || s.names[name] || len(s.names) >= most {
		return false
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[name] = true
	return true
}

// noteUnknown logs fields that nothing here knows, each once.
func (s *Server) noteUnknown(route string, names []string) {
	for _, name := range names {
		if s.unknown.first(route + " " + name) {
			s.log.Info().Str("route", route).Str("field", name).Msg("unknown request field ignored")
		}
	}
}
