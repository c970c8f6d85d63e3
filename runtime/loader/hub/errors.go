package hub

import "errors"

// Reasons why a model cannot be had. The errors of Resolve wrap one of them where it applies, and say what to do.
var (
	ErrBadID            = errors.New("not a repository id")
	ErrUnauthorized     = errors.New("the hub does not accept the token")
	ErrGated            = errors.New("the repository is gated")
	ErrForbidden        = errors.New("access is forbidden")
	ErrRepoNotFound     = errors.New("there is no such repository, or it is private")
	ErrRevisionNotFound = errors.New("there is no such revision")
	ErrEntryNotFound    = errors.New("there is no such file")
	ErrRateLimited      = errors.New("the hub's rate limit is reached")
	ErrUnavailable      = errors.New("the hub cannot be reached")
	ErrOffline          = errors.New("not in the cache, and offline mode is on")
	ErrNoSafetensors    = errors.New("the repository has no safetensors weights")
	ErrIntegrity        = errors.New("a file is not what the hub announced")
	ErrUnsafe           = errors.New("the hub announced an unsafe name")
	ErrDiskFull         = errors.New("not enough space on the disk")
	ErrLocked           = errors.New("another process holds the file")
)
