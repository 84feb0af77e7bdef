module redlockd/proxy/interop/go-rueidis

go 1.26.0

replace redlockd/proxy/interop/go-story => ../go-story

require (
	github.com/redis/rueidis v1.0.79
	redlockd/proxy/interop/go-story v0.0.0-00010101000000-000000000000
)

require golang.org/x/sys v0.49.0 // indirect
