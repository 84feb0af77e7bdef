package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"redlockd/pool"
)

// scrape is one response to Prometheus. Labels alternate names and values.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) count(name, help string, n int64, labels ...string) {
	s.write(name, help, prometheus.CounterValue, float64(n), labels)
}

func (s scrape) gauge(name, help string, value float64, labels ...string) {
	s.write(name, help, prometheus.GaugeValue, value, labels)
}

func (s scrape) write(name, help string, kind prometheus.ValueType, value float64, labels []string) {
	desc, values := describe(name, help, labels)
	s.out <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

// roundTrips exports one bound for each doubling: finer ones would be most of the output.
func (s scrape) roundTrips(name, help string, h *pool.Histogram, labels ...string) {
	desc, values := describe(name, help, labels)
	bounds, seen := make(map[float64]uint64), uint64(0)
	for i, n := range h.Counts {
		if seen += n; i%4 == 3 {
			bounds[pool.Bound(i).Seconds()] = seen
		}
	}
	s.out <- prometheus.MustNewConstHistogram(desc, seen, h.Sum.Seconds(), bounds, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(name, help, names, nil), values
}
