package proxy

// tlslog.go: what the log has about certificates and handshakes.

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"time"

	"redlockd/proxy/tlsconf"
)

func warnUnusable(log *slog.Logger, config *tls.Config, file string) {
	if why := tlsconf.Unusable(config, time.Now()); why != "" {
		log.Warn("certificate of the daemon is not valid now; clients do not accept it", "file", file, "err", why,
			"hint", "replace the file and send SIGHUP; check the clock of this machine")
	}
}

func logHandshake(log *rareLog, client, listen string, err error) {
	logger := log.out
	var rejected *tls.CertificateVerificationError
	switch {
	case errors.As(err, &rejected) || strings.Contains(err.Error(), "client didn't provide a certificate"):
		log.Warn("client certificate rejected", "client", client, "listen", listen, "err", err,
			"hint", "clients must show a certificate for client authentication that is valid now and that tls-ca has signed")
	case strings.Contains(err.Error(), "tls: "): // not of clients that only connect, as probes do
		log.Warn("TLS handshake failed", "client", client, "listen", listen, "err", err,
			"hint", "clients must use TLS here, and accept the certificate of this daemon: is it still valid?")
	default:
		logger.Debug("TLS handshake failed", "client", client, "listen", listen, "err", err)
	}
}
