package api

import (
	"net/http"

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
		s.fail(c, &apiError{
			Status: http.StatusNotFound, Type: typeInvalid,
			Message: "no such route: " + c.Request.Method + " " + clip(c.Request.URL.Path),
		})
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

	r.GET("/health", s.health)
	r.GET("/v1/health", s.health)
	r.GET("/ping", s.health)
	r.POST("/ping", s.health)
	r.GET("/ready", s.ready)
	r.GET("/version", s.version)
	r.GET("/metrics", s.scrape)
	return r
}
