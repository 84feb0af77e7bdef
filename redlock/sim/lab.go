package sim

// Lab is what worlds of one thread share: compiled scripts.
type Lab struct{ engine *engine }

// NewLab prepares a thread.
func NewLab() *Lab { return &Lab{engine: newEngine()} }
