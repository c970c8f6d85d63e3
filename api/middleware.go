package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"
)

// Keys of what a request's context carries.
const (
	turnKey  = "turn"
	errorKey = "error"
)

// fail answers with an error in the dialect's shape.
func (s *Server) fail(c *gin.Context, e *apiError) {
	s.note(c, e)
	if e == errCanceled {
		c.Abort()
		return
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.NoRetry {
		c.Header("X-Should-Retry", "false")
	}
	if e.Status == http.StatusUnauthorized {
		c.Header("WWW-Authenticate", "Bearer")
	}
	s.writeJSON(c, e.Status, e.openAI())
	c.Abort()
}

// note keeps an error for the log line of its request.
func (s *Server) note(c *gin.Context, e *apiError) { c.Set(errorKey, e) }

// requestID echoes the client's id of the request, or makes one.
func requestID(c *gin.Context) {
	id := c.GetHeader("X-Request-Id")
	if !sane(id) {
		id = newID("req_")
	}
	c.Header("X-Request-Id", id)
}

// sane tells whether a client's id can stand in a header and a log line.
func sane(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// logRequest writes one line for each request, after it.
func (s *Server) logRequest(c *gin.Context) {
	start := time.Now()
	c.Next()
	level := zerolog.InfoLevel
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead || c.Request.Method == http.MethodOptions {
		level = zerolog.DebugLevel // health checks and scrapes
	}
	e, failed := c.Get(errorKey)
	status := c.Writer.Status()
	if failed {
		status = e.(*apiError).Status
		if status >= http.StatusInternalServerError {
			level = zerolog.ErrorLevel
		}
	}
	s.count(c, status)
	line := s.log.WithLevel(level).Str("method", c.Request.Method).Str("path", c.Request.URL.Path).Int("status", status).
		Dur("took_ms", time.Since(start)).Str("request_id", c.Writer.Header().Get("X-Request-Id"))
	if failed {
		line = line.Str("error", e.(*apiError).Message)
	}
	if v, ok := c.Get(turnKey); ok {
		t := v.(*turn)
		line = line.Str("id", t.id).Bool("stream", t.stream).
			Int("prompt_tokens", t.used.prompt).Int("completion_tokens", t.used.completion)
	}
	line.Msg("request")
}

// recoverPanic turns a panic of a handler into a 500, or into a broken
// connection when the answer has begun.
func (s *Server) recoverPanic(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		s.log.Error().Interface("panic", v).Str("path", c.Request.URL.Path).Bytes("stack", debug.Stack()).Msg("a handler panicked")
		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		s.fail(c, &apiError{Status: http.StatusInternalServerError, Type: typeServer, Message: "internal error"})
	}()
	c.Next()
}

// openRoutes need no key: probes and scrapers have none.
var openRoutes = []string{"/health", "/v1/health", "/ready", "/ping", "/metrics"}

// auth lets in who knows a key.
func (s *Server) auth() gin.HandlerFunc {
	keys := make([][sha256.Size]byte, len(s.cfg.APIKeys))
	for i, key := range s.cfg.APIKeys {
		keys[i] = sha256.Sum256([]byte(key))
	}
	return func(c *gin.Context) {
		r := c.Request
		if len(keys) == 0 || r.Method == http.MethodOptions || slices.Contains(openRoutes, r.URL.Path) ||
			r.Method == http.MethodHead && r.URL.Path == "/" {
			return
		}
		given, named := bearer(r)
		// Hashes have one length, and every key is compared: the time taken
		// says nothing about any of them.
		sum, ok := sha256.Sum256([]byte(given)), 0
		for i := range keys {
			ok |= subtle.ConstantTimeCompare(sum[:], keys[i][:])
		}
		if ok == 1 {
			return
		}
		message := "the API key is not valid"
		if !named {
			message = "an API key is needed: send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\""
		}
		s.fail(c, &apiError{Status: http.StatusUnauthorized, Type: typeInvalid, Code: codeInvalidKey, Message: message})
	}
}

// bearer is the key a request names.
func bearer(r *http.Request) (key string, ok bool) {
	if scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key), true
	}
	key = r.Header.Get("X-Api-Key")
	return key, key != ""
}

// cors lets pages of the configured origins read answers.
func (s *Server) cors(c *gin.Context) {
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	origin := c.GetHeader("Origin")
	if origin == "" || !s.originAllowed(origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if c.Request.Method != http.MethodOptions || c.GetHeader("Access-Control-Request-Method") == "" {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, HEAD, OPTIONS")
	headers := c.GetHeader("Access-Control-Request-Headers")
	if headers == "" {
		headers = "Authorization, Content-Type, X-Api-Key, X-Request-Id"
	}
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Access-Control-Max-Age", "600")
	c.AbortWithStatus(http.StatusNoContent)
}

func (s *Server) originAllowed(origin string) bool {
	if s.cfg.CORSOrigins != nil {
		return slices.Contains(s.cfg.CORSOrigins, "*") || slices.Contains(s.cfg.CORSOrigins, origin)
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || strings.HasSuffix(host, ".localhost")
}
