package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
)

func init() {
	// gin prints its routes otherwise.
	gin.SetMode(gin.ReleaseMode)
}

func (s *Server) routes() http.Handler {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	r.UseRawPath = true // names in paths may hold an escaped slash
	r.UnescapePathValues = true
	r.Use(requestID, s.logRequest, s.recoverPanic, s.boundBody, s.cors, s.auth())

	r.NoRoute(func(c *gin.Context) {
		if c.Request.Method == http.MethodOptions {
			c.Status(http.StatusNoContent)
			return
		}
		path := c.Request.URL.Path
		message := "no such route: " + c.Request.Method + " " + clip(path)
		if slices.ContainsFunc(r.Routes(), func(known gin.RouteInfo) bool { return known.Path == "/v1"+path }) {
			message += "; the base URL ends in /v1: /v1" + path
		}
		s.fail(c, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Message: message})
	})
	r.NoMethod(func(c *gin.Context) {
		if c.Request.Method == http.MethodOptions {
			c.Status(http.StatusNoContent)
			return
		}
		s.fail(c, &apiError{
			Status: http.StatusMethodNotAllowed, Type: typeInvalid,
			Message: "the method " + c.Request.Method + " is not served on " + clip(c.Request.URL.Path) + "; use " + c.Writer.Header().Get("Allow"),
		})
	})

	r.POST("/v1/chat/completions", s.chatCompletions)
	r.POST("/v1/completions", s.completions)
	r.GET("/v1/models", s.listModels)
	r.GET("/v1/models/*id", s.getModel)
	r.POST("/tokenize", s.tokenize)
	r.POST("/detokenize", s.detokenize)

	probe := []string{http.MethodGet, http.MethodHead}
	r.Match(probe, "/health", s.health)
	r.Match(probe, "/v1/health", s.health)
	r.Match(append(probe, http.MethodPost), "/ping", s.health)
	r.Match(probe, "/ready", s.ready)
	r.HEAD("/", func(c *gin.Context) { c.Status(http.StatusOK) }) // clients that look whether anybody is there
	r.GET("/version", s.version)
	r.GET("/openapi.json", s.describe)
	r.GET("/metrics", s.scrape)
	return r
}
