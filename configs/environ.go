package configs

// environ.go reads the settings in the environment, and finds variables with our prefix that
// are no settings.

import (
	"regexp"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

const envPrefix = "REDLOCKD_"

// readEnviron takes REDLOCKD_MAX_TTL for max-ttl. A name with the prefix that
// is no option is an error, since a misspelt setting would go unnoticed.
func (l *loader) readEnviron(environ []string) layer {
	byVariable := make(map[string]string)
	for _, name := range l.names() {
		byVariable[variable(name)] = name
	}
	take := func(key, value string) (string, any) {
		name, known := byVariable[key]
		if !known && !setByCluster(key) {
			l.problems = append(l.problems, &FieldError{Field: key, Problem: "is no option",
				Advice: "the nearest one is " + nearestVariable(key, l.names()) + ", see --help"})
		}
		return name, value
	}
	values := koanf.New(".")
	provider := env.Provider("", env.Opt{Prefix: envPrefix, TransformFunc: take, EnvironFunc: func() []string { return environ }})
	if err := values.Load(provider, nil); err != nil {
		l.problems = append(l.problems, &FieldError{Field: "environment", Problem: err.Error()})
	}
	return layer{values, variable}
}

// variable returns the name of an option's variable: max-ttl is REDLOCKD_MAX_TTL.
func variable(option string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

// clusterPattern matches variables that Kubernetes sets in every container for a Service
// called redlockd or redlockd-something (REDLOCKD_SERVICE_HOST,
// REDLOCKD_PORT_7379_TCP_ADDR …), and Docker's links likewise. Without this
// exception a daemon would refuse to start beside its own Service.
var clusterPattern = regexp.MustCompile(`^REDLOCKD_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func setByCluster(key string) bool { return clusterPattern.MatchString(key) }

func nearestVariable(key string, options []string) string {
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(key, envPrefix), "_", "-"))
	return variable(nearest(name, options))
}
