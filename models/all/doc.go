// Package all registers every model family: import it for its effect where
// models are opened.
//
//	import _ "infer/models/all" ─► models.Supported, models.Open
//
// It must hold nothing else.
package all
