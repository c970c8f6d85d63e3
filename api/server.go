package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"
)

// Limits of the server. Zero fields take the default in brackets.
type Limits struct {
	Body      int64         // bytes of one request's body [16 MiB]
	Requests  int           // requests being served at a time; more are answered 429 [1024]
	Request   time.Duration // from the first byte of a request to the last of its answer [1 h]
	KeepAlive time.Duration // silence on a stream before a comment line is sent [15 s]

	WriteTimeout time.Duration // for one write to a client that takes nothing [30 s]
	BodyTimeout  time.Duration // for a whole body to arrive [60 s]
	Loading      time.Duration // that a request waits for a model that is still loading [30 s]
}

func (l Limits) withDefaults() Limits {
	def := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	if l.Body <= 0 {
		l.Body = 16 << 20
	}
	if l.Requests <= 0 {
		l.Requests = 1024
	}
	def(&l.Request, time.Hour)
	def(&l.KeepAlive, 15*time.Second)
	def(&l.WriteTimeout, 30*time.Second)
	def(&l.BodyTimeout, time.Minute)
	def(&l.Loading, 30*time.Second)
	return l
}

// Config of a server.
type Config struct {
	Version string   // of the program, for /version
	APIKeys []string // none: everybody is let in
	// CORSOrigins are the web origins whose pages may read answers; "*" is any.
	// nil: pages of this machine only (localhost, 127.0.0.1, [::1], any port).
	CORSOrigins []string
	Limits      Limits
	Log         zerolog.Logger
}

// Server serves one model. It answers from the start; requests that need the
// model wait for SetModel a while, then are 503.
type Server struct {
	cfg     Config
	limits  Limits
	log     zerolog.Logger
	handler http.Handler
	http    *http.Server
	process *prometheus.Registry
	answers *prometheus.CounterVec

	model    atomic.Pointer[Model]
	changed  chan struct{} // closed by the first SetModel or Shutdown
	change   func()        // closes it
	draining atomic.Bool
	computed atomic.Bool // the model has made a token
	warming  sync.Mutex

	slots   *semaphore.Weighted // requests being served
	bodies  *semaphore.Weighted // bytes of bodies being read and decoded
	unknown seenNames

	base context.Context // ends when Shutdown gives up waiting
	stop context.CancelFunc
}

// New makes a server without a model.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, limits: cfg.Limits.withDefaults(), log: cfg.Log}
	s.base, s.stop = context.WithCancel(context.Background())
	s.changed = make(chan struct{})
	s.change = sync.OnceFunc(func() { close(s.changed) })
	s.slots = semaphore.NewWeighted(int64(s.limits.Requests))
	// Room for several of the largest bodies; small ones never wait.
	s.bodies = semaphore.NewWeighted(16 * s.limits.Body)
	s.process = s.newProcessRegistry()
	s.handler = s.routes()
	s.http = &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// No WriteTimeout: an answer may take long. Each write has a deadline.
	}
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetModel starts serving m.
func (s *Server) SetModel(m Model) {
	m.metrics = newMetrics(&m)
	if m.Tokenizer == nil {
		m.Tokenizer = idsOnly{m.Vocab}
	}
	if m.Vocab == 0 {
		m.Vocab = m.Tokenizer.VocabSize()
	}
	s.model.Store(&m)
	s.change()
}

// Serve answers requests on l until Shutdown; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown drains: no new request is taken, those that run may end. When ctx
// ends first, they are cancelled; their clients are told so, and ctx's error
// is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.change()
	s.http.SetKeepAlivesEnabled(false)
	err := s.drain(ctx)
	if err == nil {
		err = s.http.Shutdown(ctx)
	}
	s.stop()
	if err != nil {
		// The cancelled requests need a moment to say goodbye.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.http.Shutdown(last)
		_ = s.http.Close()
	}
	return err
}

// drain waits for the requests that run.
func (s *Server) drain(ctx context.Context) error {
	all := int64(s.limits.Requests)
	if err := s.slots.Acquire(ctx, all); err != nil {
		return err
	}
	s.slots.Release(all)
	return nil
}

// current is the model, or why there is none to ask.
func (s *Server) current() (*Model, error) {
	if s.draining.Load() {
		return nil, errDraining()
	}
	m := s.model.Load()
	if m == nil {
		return nil, errLoading()
	}
	return m, nil
}

// loaded is current, but waits for a model that is still loading: who starts a
// server and asks it at once gets an answer, and need not ask again and again.
func (s *Server) loaded(ctx context.Context) (*Model, error) {
	wait := time.NewTimer(s.limits.Loading)
	defer wait.Stop()
	select {
	case <-s.changed:
	case <-wait.C:
	case <-ctx.Done():
	}
	return s.current()
}

// generating is the frame of every route that generates: limits, body, turn,
// answer. decode makes the turn with its prompts.
func (s *Server) generating(c *gin.Context, decode func(*Model, *fields) (*turn, dialect, error)) {
	m, err := s.loaded(c.Request.Context())
	if err != nil {
		s.fail(c, s.asAPIError(c.Request.Context(), err, ""))
		return
	}
	var t *turn
	var d dialect
	admitted := false
	defer func() {
		if admitted {
			s.slots.Release(1)
		}
	}()
	err = s.withBody(c, func(f *fields) error {
		// Only now: a body that comes slowly takes nobody's place.
		admitted = s.slots.TryAcquire(1)
		switch {
		case s.draining.Load():
			return errDraining()
		case !admitted:
			return errQueueFull()
		}
		var err error
		if t, d, err = decode(m, f); err != nil {
			return err
		}
		return t.fit(m.Context)
	})
	if err != nil {
		s.fail(c, s.asAPIError(c.Request.Context(), err, "prompt"))
		return
	}
	c.Set(turnKey, t)
	s.answer(c, m, t, d)
}
