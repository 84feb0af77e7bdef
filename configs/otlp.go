package configs

// otlp.go contains the options for traces: the collector and the share of operations.

import (
	"errors"
	"net/url"
	"strconv"
)

func otlpEndpointOption() option {
	return option{
		name: "otlp-endpoint", argument: "URL", help: "traces, to an OpenTelemetry collector", secret: true, // it may contain a password, which is rejected
		allowed: "http://host:port or https://host:port, with the path of the receiver if it is not /v1/traces",
		advice:  "name an OpenTelemetry collector, for example http://127.0.0.1:4318",
		set:     setter(decodeText, func(c *Config) *string { return &c.OTLPEndpoint }),
		show:    func(c *Config) string { return c.OTLPEndpoint },
		check:   checkOTLP,
	}
}

func checkOTLP(c *Config) []problem {
	if c.OTLPEndpoint == "" {
		return nil
	}
	u, err := url.Parse(c.OTLPEndpoint)
	switch {
	case err != nil:
		return []problem{{text: "is not a URL"}}
	case u.User != nil:
		return []problem{{text: "has a user or a password, which would be shown to all users", advice: "configure it in a collector on this machine"}}
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return []problem{{text: "is not a URL of that form"}}
	}
	return nil
}

// otlpSampleOption is a fraction, as text in flags and variables, a number in the file.
func otlpSampleOption() option {
	return option{
		name: "otlp-sample", argument: "SHARE", allowed: "0 to 1",
		advice: "write 0.01 for one operation in a hundred; those with a sampled traceparent in META are always traced",
		set:    setter(decodeShare, func(c *Config) *float64 { return &c.OTLPSample }),
		show:   func(c *Config) string { return strconv.FormatFloat(c.OTLPSample, 'g', -1, 64) },
		check: func(c *Config) []problem {
			if c.OTLPSample >= 0 && c.OTLPSample <= 1 {
				return nil
			}
			return []problem{{text: "is no share"}}
		},
	}
}

func decodeShare(value any) (float64, error) {
	switch v := value.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		if share, err := strconv.ParseFloat(v, 64); err == nil {
			return share, nil
		}
	}
	return 0, errors.New("is not a number")
}
