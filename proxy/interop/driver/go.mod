module redlockd/proxy/interop/driver

go 1.26.0
