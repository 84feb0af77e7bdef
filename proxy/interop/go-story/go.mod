module redlockd/proxy/interop/go-story

go 1.26.0
