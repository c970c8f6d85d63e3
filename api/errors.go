package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"infer/runtime/engine"
)

// apiError is an answer that is not a success, before a dialect gives it a
// shape.
type apiError struct {
	Status  int
	Type    string // OpenAI's word for the kind of error
	Code    string // OpenAI's code; "" is null
	Param   string // path of the field at fault; "" is null
	Message string

	RetryAfter time.Duration // > 0: when trying again may help
	NoRetry    bool          // clients that retry this status by habit should not
}

func (e *apiError) Error() string { return e.Message }

// Types and codes of OpenAI's error bodies.
const (
	typeInvalid   = "invalid_request_error"
	typeRateLimit = "rate_limit_error"
	typeServer    = "server_error"

	codeInvalidValue  = "invalid_value"
	codeContextLength = "context_length_exceeded"
	codeModelNotFound = "model_not_found"
	codeInvalidKey    = "invalid_api_key"
	codeQueueFull     = "queue_full"
	codeLoading       = "loading"
	codeDraining      = "draining"
	codeTimeout       = "request_timeout"
	codeDeviceFault   = "device_fault"
)

// badField is a 400 that names the field at path.
func badField(path, format string, args ...any) *apiError {
	return &apiError{
		Status: http.StatusBadRequest, Type: typeInvalid, Code: codeInvalidValue, Param: path,
		Message: path + ": " + fmt.Sprintf(format, args...),
	}
}

// badBody is a 400 about the body as a whole.
func badBody(format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Message: fmt.Sprintf(format, args...)}
}

func errBodyTooLarge(limit int64) *apiError {
	return &apiError{
		Status: http.StatusRequestEntityTooLarge, Type: typeInvalid,
		Message: fmt.Sprintf("the request body is larger than the limit of %d bytes", limit),
	}
}

func errContextLength(param string, prompt, context int) *apiError {
	return &apiError{
		Status: http.StatusBadRequest, Type: typeInvalid, Code: codeContextLength, Param: param,
		Message: fmt.Sprintf("This model's maximum context length is %d tokens, but the prompt has %d tokens and leaves no room for an answer. Shorten %s.",
			context, prompt, param),
	}
}

func errDraining() *apiError {
	return &apiError{
		Status: http.StatusServiceUnavailable, Type: typeServer, Code: codeDraining,
		Message: "the server is shutting down and takes no new requests", RetryAfter: 5 * time.Second,
	}
}

func errLoading() *apiError {
	return &apiError{
		Status: http.StatusServiceUnavailable, Type: typeServer, Code: codeLoading,
		Message: "the model is still loading", RetryAfter: 2 * time.Second,
	}
}

func errQueueFull() *apiError {
	return &apiError{
		Status: http.StatusTooManyRequests, Type: typeRateLimit, Code: codeQueueFull,
		Message: "too many requests are waiting; try again later", RetryAfter: time.Second,
	}
}

func errTimeout(limit time.Duration) *apiError {
	return &apiError{
		Status: http.StatusRequestTimeout, Type: typeInvalid, Code: codeTimeout, NoRetry: true,
		Message: fmt.Sprintf("the request took longer than the limit of %s", limit),
	}
}

// errCanceled stands for a client that is gone: nobody reads it, the log does.
var errCanceled = &apiError{Status: 499, Type: typeInvalid, Message: "the client closed the connection"}

// asAPIError says what an error of decoding or generating means to a client.
// The prompt's parameter is named for errors about its length.
func asAPIError(err error, param string, limit time.Duration) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	switch {
	case errors.Is(err, engine.ErrQueueFull):
		return errQueueFull()
	case errors.Is(err, engine.ErrDraining):
		return errDraining()
	case errors.Is(err, engine.ErrDeadline), errors.Is(err, context.DeadlineExceeded):
		return errTimeout(limit)
	case errors.Is(err, engine.ErrInvalid):
		return badBody("%v", err)
	case errors.Is(err, context.Canceled):
		return errCanceled
	case errors.Is(err, engine.ErrTooLong):
		return &apiError{
			Status: http.StatusBadRequest, Type: typeInvalid, Code: codeContextLength, Param: param, Message: err.Error(),
		}
	case errors.Is(err, engine.ErrInvalid): // such as options that together leave no token
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Message: err.Error()}
	case errors.Is(err, engine.ErrFault):
		return &apiError{Status: http.StatusInternalServerError, Type: typeServer, Code: codeDeviceFault, Message: err.Error()}
	}
	return &apiError{Status: http.StatusInternalServerError, Type: typeServer, Message: err.Error()}
}

// openAIError is the body of an error in OpenAI's dialect.
type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

// All four keys are always there: clients read them without asking.
type openAIErrorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) openAI() openAIError {
	return openAIError{openAIErrorBody{
		Message: e.Message, Type: e.Type, Param: orNull(e.Param), Code: orNull(e.Code),
	}}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
