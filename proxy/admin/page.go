package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"redlockd/pool"
)

// page writes one scrape. Labels alternate names and values.
type page struct{ out chan<- prometheus.Metric }

func (p page) count(name, help string, n int64, labels ...string) {
	p.write(name, help, prometheus.CounterValue, float64(n), labels)
}

func (p page) gauge(name, help string, value float64, labels ...string) {
	p.write(name, help, prometheus.GaugeValue, value, labels)
}

func (p page) write(name, help string, kind prometheus.ValueType, value float64, labels []string) {
	desc, values := describe(name, help, labels)
	p.out <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

// roundTrips shows one bound for each doubling: finer ones would be most of the page.
func (p page) roundTrips(name, help string, h *pool.Histogram, labels ...string) {
	desc, values := describe(name, help, labels)
	bounds, seen := make(map[float64]uint64), uint64(0)
	for i, n := range h.Counts {
		if seen += n; i%4 == 3 {
			bounds[pool.Bound(i).Seconds()] = seen
		}
	}
	p.out <- prometheus.MustNewConstHistogram(desc, seen, h.Sum.Seconds(), bounds, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc(name, help, names, nil), values
}
