package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"infer/runtime/engine"
)

// Buckets as vLLM has them, so that dashboards made for it fit.
var (
	firstTokenBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenTimeBuckets  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBuckets    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	stepBuckets       = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// Reasons of request_success_total.
const (
	reasonAbort = "abort"
	reasonError = "error"
)

// metrics of one model. Names with the prefix vllm: are those that the
// Kubernetes Gateway API's inference extension and common dashboards read.
type metrics struct {
	registry *prometheus.Registry

	promptTokens, generatedTokens prometheus.Counter
	finished                      *prometheus.CounterVec

	firstToken, interToken, perToken         prometheus.Histogram
	endToEnd, queueTime, prefill, decode     prometheus.Histogram
	requestPrompt, requestGenerated, perStep prometheus.Histogram
}

func newMetrics(m *Model) *metrics {
	reg := prometheus.NewRegistry()
	labels := prometheus.Labels{"model_name": m.Name}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "vllm:" + name, Help: help, ConstLabels: labels})
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vllm:" + name, Help: help, ConstLabels: labels, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	sizes := tokenCountBuckets(m.Context)
	x := &metrics{
		registry:         reg,
		promptTokens:     counter("prompt_tokens_total", "Prompt tokens of finished sequences."),
		generatedTokens:  counter("generation_tokens_total", "Tokens generated."),
		firstToken:       histogram("time_to_first_token_seconds", "From a sequence's arrival to its first token.", firstTokenBuckets),
		interToken:       histogram("inter_token_latency_seconds", "Between two tokens of a sequence.", tokenTimeBuckets),
		perToken:         histogram("request_time_per_output_token_seconds", "Mean time per token after the first.", tokenTimeBuckets),
		endToEnd:         histogram("e2e_request_latency_seconds", "From a sequence's arrival to its end.", requestBuckets),
		queueTime:        histogram("request_queue_time_seconds", "From a sequence's arrival to its first step.", requestBuckets),
		prefill:          histogram("request_prefill_time_seconds", "From a sequence's first step to its first token.", requestBuckets),
		decode:           histogram("request_decode_time_seconds", "From a sequence's first token to its end.", requestBuckets),
		requestPrompt:    histogram("request_prompt_tokens", "Prompt tokens of a sequence.", sizes),
		requestGenerated: histogram("request_generation_tokens", "Tokens generated for a sequence.", sizes),
		perStep:          histogram("iteration_tokens_total", "Tokens in one step of the engine.", stepBuckets),
	}
	x.finished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vllm:request_success_total", Help: "Sequences ended, by reason.", ConstLabels: labels,
	}, []string{"finished_reason"})
	reg.MustRegister(x.finished)
	for _, reason := range []string{string(engine.FinishStop), string(engine.FinishLength), reasonAbort, reasonError} {
		x.finished.WithLabelValues(reason)
	}
	if m.Stats != nil {
		reg.MustRegister(newStatsCollector(m.Stats, labels))
	}
	return x
}

// tokenCountBuckets are 1, 2, 5, 10, … up to the context length.
func tokenCountBuckets(context int) []float64 {
	var out []float64
	for p := 1; p <= context; p *= 10 {
		for _, k := range []int{1, 2, 5} {
			if p*k <= context {
				out = append(out, float64(p*k))
			}
		}
	}
	return out
}

// newProcessRegistry holds what does not depend on a model.
func (s *Server) newProcessRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.answers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "infer_http_requests_total", Help: "Requests answered, by route and status.",
	}, []string{"route", "status"})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "infer_build_info", Help: "1, labelled with the program's version.", ConstLabels: prometheus.Labels{"version": s.cfg.Version},
	})
	info.Set(1)
	ready := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "infer_ready", Help: "1 when the model has computed and new requests are taken.",
	}, func() float64 {
		if _, err := s.current(); err == nil && s.computed.Load() {
			return 1
		}
		return 0
	})
	reg.MustRegister(s.answers, info, ready)
	return reg
}

// GET /metrics
func (s *Server) scrape(c *gin.Context) {
	gatherers := prometheus.Gatherers{s.process}
	if m := s.model.Load(); m != nil {
		gatherers = append(gatherers, m.metrics.registry)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}).ServeHTTP(c.Writer, c.Request)
}

// count adds one answer to the requests' counter. Routes are those that exist:
// a client cannot make labels.
func (s *Server) count(c *gin.Context, status int) {
	route := c.FullPath()
	if route == "" {
		route = "none"
	}
	s.answers.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// ObserveStep tells how many tokens one step of the engine computed.
func (s *Server) ObserveStep(tokens int) {
	if m := s.model.Load(); m != nil {
		m.metrics.perStep.Observe(float64(tokens))
	}
}

// meter measures one sequence.
type meter struct {
	m                 *metrics
	start, first, now time.Time
}

func (x *metrics) sequence() *meter { return &meter{m: x, start: time.Now()} }

func (t *meter) event(ev engine.Event) {
	if !ev.HasToken {
		return
	}
	now := time.Now()
	if t.first.IsZero() {
		t.first = now
		t.m.firstToken.Observe(now.Sub(t.start).Seconds())
	} else {
		t.m.interToken.Observe(now.Sub(t.now).Seconds())
	}
	t.now = now
	t.m.generatedTokens.Inc()
}

// done counts a sequence that came to its end.
func (t *meter) done(r engine.Result, d delta) {
	t.m.finished.WithLabelValues(string(d.finish)).Inc()
	t.m.promptTokens.Add(float64(d.usage.prompt))
	t.m.requestPrompt.Observe(float64(d.usage.prompt))
	t.m.requestGenerated.Observe(float64(d.usage.completion))
	end := time.Now()
	t.m.endToEnd.Observe(end.Sub(t.start).Seconds())
	if !t.first.IsZero() {
		t.m.decode.Observe(end.Sub(t.first).Seconds())
		if n := d.usage.completion; n > 1 {
			t.m.perToken.Observe(end.Sub(t.first).Seconds() / float64(n-1))
		}
	}
	// The engine's own times, where it has them.
	if q, s := r.Times.Queued, r.Times.Started; !q.IsZero() && !s.IsZero() {
		t.m.queueTime.Observe(s.Sub(q).Seconds())
		if f := r.Times.FirstToken; !f.IsZero() {
			t.m.prefill.Observe(f.Sub(s).Seconds())
		}
	}
}

// failed counts a sequence that did not.
func (t *meter) failed(err error) {
	reason := reasonError
	if errors.Is(err, context.Canceled) || errors.Is(err, errCanceled) {
		reason = reasonAbort
	}
	t.m.finished.WithLabelValues(reason).Inc()
}

// statsCollector turns a snapshot of the engine into gauges and counters.
type statsCollector struct {
	stats func() Stats

	running, waiting, usage, cacheInfo, lora *prometheus.Desc
	queries, hits, preemptions               *prometheus.Desc
	steps, failedSteps, stepTime             *prometheus.Desc
	drafted, accepted                        *prometheus.Desc
	devices                                  deviceCollector
	planned, used                            *prometheus.Desc
}

func newStatsCollector(stats func() Stats, labels prometheus.Labels) *statsCollector {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("vllm:"+name, help, variable, labels)
	}
	own := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("infer_"+name, help, variable, labels)
	}
	return &statsCollector{
		stats:       stats,
		devices:     newDeviceCollector(labels),
		running:     desc("num_requests_running", "Sequences in the engine's batch."),
		waiting:     desc("num_requests_waiting", "Sequences in the engine's queue."),
		usage:       desc("kv_cache_usage_perc", "Part of the K/V blocks in use, 0 to 1."),
		cacheInfo:   desc("cache_config_info", "1, labelled with the K/V cache's shape.", "block_size", "num_gpu_blocks"),
		lora:        desc("lora_requests_info", "Adapters in use: none.", "max_lora", "running_lora_adapters", "waiting_lora_adapters"),
		queries:     desc("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache."),
		hits:        desc("prefix_cache_hits_total", "Prompt tokens found in the prefix cache."),
		preemptions: desc("num_preemptions_total", "Sequences put back into the queue for want of blocks."),
		drafted:     desc("spec_decode_num_draft_tokens_total", "Guessed tokens that were computed."),
		accepted:    desc("spec_decode_num_accepted_tokens_total", "Guessed tokens that were kept."),
		steps:       own("steps_total", "Steps of the engine."),
		failedSteps: own("failed_steps_total", "Steps of the engine that failed."),
		planned:     own("memory_planned_bytes", "Memory of a device that the plan says will be used.", "device"),
		used:        own("memory_used_bytes", "Memory of a device that is allocated.", "device"),
		stepTime:    own("step_seconds_total", "Time spent in steps of the engine."),
	}
}

func (c *statsCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c *statsCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	used := 0.0
	if s.BlocksTotal > 0 {
		used = float64(s.BlocksUsed) / float64(s.BlocksTotal)
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	put(c.running, prometheus.GaugeValue, float64(s.Running))
	put(c.waiting, prometheus.GaugeValue, float64(s.Waiting))
	put(c.usage, prometheus.GaugeValue, used)
	put(c.cacheInfo, prometheus.GaugeValue, 1, strconv.Itoa(s.BlockSize), strconv.Itoa(s.BlocksTotal))
	put(c.lora, prometheus.GaugeValue, 0, "0", "", "")
	put(c.queries, prometheus.CounterValue, float64(s.PrefixQueries))
	put(c.hits, prometheus.CounterValue, float64(s.PrefixHits))
	put(c.preemptions, prometheus.CounterValue, float64(s.Preemptions))
	put(c.drafted, prometheus.CounterValue, float64(s.Drafted))
	put(c.accepted, prometheus.CounterValue, float64(s.Accepted))
	put(c.steps, prometheus.CounterValue, float64(s.Steps))
	put(c.failedSteps, prometheus.CounterValue, float64(s.FailedSteps))
	put(c.stepTime, prometheus.CounterValue, s.StepTime.Seconds())
	c.devices.collect(&s.Devices, put)
	for _, m := range s.Memory {
		put(c.planned, prometheus.GaugeValue, float64(m.Planned), m.Device)
		if m.Used >= 0 {
			put(c.used, prometheus.GaugeValue, float64(m.Used), m.Device)
		}
	}
}
