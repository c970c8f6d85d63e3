package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// dialect writes a turn's answer in the shape of one route.
type dialect interface {
	// whole is the body of an answer that is not streamed.
	whole(o outcome) any
	// stream adds one delta's events.
	stream(w *eventWriter, d delta) error
	// end adds the events after the last delta.
	end(w *eventWriter, u usage) error
	// fail adds the event of an error after the first event.
	fail(w *eventWriter, e *apiError) error
}

// answer runs a turn and writes its answer, streamed or whole.
func (s *Server) answer(c *gin.Context, m *Model, t *turn, d dialect) {
	ctx, cancel := s.requestContext(c.Request.Context())
	defer cancel()
	if !t.stream {
		o, err := s.collect(ctx, m, t)
		if err != nil {
			s.fail(c, s.asAPIError(ctx, err, t.param))
			return
		}
		t.used = o.usage
		s.writeJSON(c, http.StatusOK, d.whole(o))
		return
	}
	w := newEventWriter(c.Writer, s.limits.WriteTimeout)
	err := s.stream(ctx, m, t, d, w)
	if err == nil {
		return
	}
	e := s.asAPIError(ctx, err, t.param)
	if !w.open {
		s.fail(c, e)
		return
	}
	s.note(c, e)
	if e == errCanceled {
		return
	}
	if d.fail(w, e) == nil {
		_ = w.flush() // the connection ends here either way
	}
}

func (s *Server) stream(ctx context.Context, m *Model, t *turn, d dialect, w *eventWriter) error {
	var total usage
	err := s.run(ctx, m, t, func(dl delta) (bool, error) {
		if dl.done {
			total.add(dl.usage, dl.choice%t.bestOf == 0)
		}
		if err := d.stream(w, dl); err != nil {
			return false, err
		}
		wrote := len(w.buf) > 0
		return wrote, gone(w.flush())
	}, func() error {
		w.comment("ping")
		return gone(w.flush())
	})
	if err != nil {
		return err
	}
	t.used = total
	if err := d.end(w, total); err != nil {
		return err
	}
	return gone(w.flush())
}

// gone marks an error of writing: nobody reads the answer any more.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(errCanceled, err)
}

// requestContext ends with the client's connection, the request's time limit,
// or the server's forced end.
func (s *Server) requestContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancelCause := context.WithCancelCause(parent)
	stop := context.AfterFunc(s.base, func() { cancelCause(errDraining()) })
	ctx, cancel := context.WithTimeout(ctx, s.limits.Request)
	return ctx, func() {
		stop()
		cancel()
		cancelCause(nil)
	}
}

// asAPIError is asAPIError with the context's own reason first: a sequence
// that was cancelled says only that it was.
func (s *Server) asAPIError(ctx context.Context, err error, param string) *apiError {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = context.Cause(ctx)
	}
	return asAPIError(err, param, s.limits.Request)
}

func (s *Server) writeJSON(c *gin.Context, status int, v any) {
	b, err := marshal(v)
	if err != nil {
		s.log.Error().Err(err).Str("path", c.FullPath()).Msg("writing an answer as JSON")
		status = http.StatusInternalServerError
		b, _ = marshal((&apiError{Type: typeServer, Message: "the answer could not be written as JSON"}).openAI())
	}
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(s.limits.WriteTimeout))
	c.Data(status, "application/json; charset=utf-8", b)
}
