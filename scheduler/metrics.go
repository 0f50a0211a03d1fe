package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of all jobs; the label is the name of the job.
type metrics struct {
	names       map[string]bool      // of the jobs
	registry    *prometheus.Registry // of the following
	runs        *prometheus.CounterVec
	failures    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	running     *prometheus.GaugeVec
	lastSuccess *prometheus.GaugeVec
	caughtUp    *prometheus.CounterVec
}

func newMetrics(jobs []Job) *metrics {
	label := []string{"name"} // not "job", because Prometheus uses that label for its targets
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, label)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, label)
	}
	m := &metrics{
		names:    make(map[string]bool),
		registry: prometheus.NewRegistry(),
		runs:     counter("gridcast_job_runs_total", "Runs that have ended."),
		failures: counter("gridcast_job_failures_total", "Runs that have ended with an error."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gridcast_job_duration_seconds", Help: "Real duration of runs.",
			Buckets: []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, label),
		running:     gauge("gridcast_job_running", "1 while the job runs."),
		lastSuccess: gauge("gridcast_job_last_success_timestamp_seconds", "Real time at which the last run without an error ended; 0: never."),
		caughtUp:    counter("gridcast_job_caught_up_total", "Instants made good more than a minute late."),
	}
	m.registry.MustRegister(m.runs, m.failures, m.duration, m.running, m.lastSuccess, m.caughtUp)
	// Every series exists from the start, so that an alert sees a job that never ran.
	for _, j := range jobs {
		m.names[j.Name] = true
		m.runs.WithLabelValues(j.Name)
		m.failures.WithLabelValues(j.Name)
		m.duration.WithLabelValues(j.Name)
		m.running.WithLabelValues(j.Name)
		m.lastSuccess.WithLabelValues(j.Name)
		m.caughtUp.WithLabelValues(j.Name)
	}
	return m
}

func (m *metrics) began(job string, caughtUp int) {
	m.running.WithLabelValues(job).Set(1)
	m.caughtUp.WithLabelValues(job).Add(float64(caughtUp))
}

func (m *metrics) ended(job string, failed bool) {
	m.runs.WithLabelValues(job).Inc()
	if failed {
		m.failures.WithLabelValues(job).Inc()
		return
	}
	m.lastSuccess.WithLabelValues(job).SetToCurrentTime()
}
