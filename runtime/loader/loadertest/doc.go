// Package loadertest hands the broken and odd checkpoints that loader and
// models are tested with to their tests: bad-checkpoints.tar.gz, and the
// folder bad-checkpoints in $INFER_CASES when that is set.
//
//	cases.json ─► Case{verdict, folder in a scratch directory} ─► Check: outcome, time, memory
//
// Nothing but tests may import it.
package loadertest
