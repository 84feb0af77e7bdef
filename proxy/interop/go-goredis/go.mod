module redlockd/proxy/interop/go-goredis

go 1.26.0

replace redlockd/proxy/interop/go-story => ../go-story

require (
	github.com/redis/go-redis/v9 v9.23.0
	redlockd/proxy/interop/go-story v0.0.0-00010101000000-000000000000
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
