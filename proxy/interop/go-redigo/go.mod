module redlockd/proxy/interop/go-redigo

go 1.26.0

replace redlockd/proxy/interop/go-story => ../go-story

require (
	github.com/gomodule/redigo v1.9.3
	redlockd/proxy/interop/go-story v0.0.0-00010101000000-000000000000
)
