package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/gin-gonic/gin"

	"infer/runtime/engine"
)

// warmTimeout bounds the one token of a readiness check.
const warmTimeout = 30 * time.Second

// GET /health: the process answers and has a model that can compute.
func (s *Server) health(c *gin.Context) {
	m, err := s.current()
	answer := struct {
		Status    string        `json:"status"`
		Devices   *deviceHealth `json:"devices,omitempty"`
		DeviceMap any           `json:"device_map,omitempty"`
	}{Status: "ok"}
	if err == nil && m.Stats != nil {
		stats := m.Stats()
		if stats.Failed != nil {
			err = &apiError{Status: http.StatusServiceUnavailable, Type: typeServer, Message: stats.Failed.Error()}
		}
		answer.Devices = stats.Devices.health()
	}
	if err != nil {
		s.fail(c, asAPIError(err, "", 0))
		return
	}
	if m.DeviceMap != nil {
		answer.DeviceMap = m.DeviceMap()
	}
	s.writeJSON(c, http.StatusOK, answer)
}

// GET /ready: the model has made a token. Where none was made yet, one is.
func (s *Server) ready(c *gin.Context) {
	m, err := s.current()
	if err != nil {
		s.fail(c, asAPIError(err, "", 0))
		return
	}
	if m.Stats != nil {
		if why := m.Stats().Devices.Recovering; why != nil {
			s.fail(c, &apiError{
				Status: http.StatusServiceUnavailable, Type: typeServer, RetryAfter: 2 * time.Second,
				Message: "the model is being loaded again without a lost device: " + why.Error(),
			})
			return
		}
	}
	if err := s.Warm(c.Request.Context()); err != nil {
		s.fail(c, &apiError{
			Status: http.StatusServiceUnavailable, Type: typeServer, Message: err.Error(), RetryAfter: 2 * time.Second,
		})
		return
	}
	s.writeJSON(c, http.StatusOK, map[string]string{"status": "ready"})
}

// Warm makes one token, unless the model has made one since its last fault;
// then the server is ready.
func (s *Server) Warm(ctx context.Context) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	if s.computed.Load() {
		return nil
	}
	s.warming.Lock()
	defer s.warming.Unlock()
	if s.computed.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	_, err = m.Generator.Generate(ctx, engine.Request{
		Prompt: []int32{0}, Deadline: deadline,
		Sampling: engine.Sampling{MaxTokens: 1, Logprobs: -1, PromptLogprobs: -1},
	}, func(engine.Event) error { return nil })
	if err != nil {
		return fmt.Errorf("not ready: making one token: %w", err)
	}
	s.computed.Store(true)
	return nil
}

// GET /version
func (s *Server) version(c *gin.Context) {
	s.writeJSON(c, http.StatusOK, map[string]string{"version": s.cfg.Version, "go": runtime.Version()})
}
