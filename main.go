// Command redlockd serves quorum locks over independent Redis masters to clients
// that speak RESP.
package main

import (
	"os"

	"redlockd/proxy/daemon"
)

func main() {
	os.Exit(daemon.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
