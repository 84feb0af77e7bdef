package sim

// Lab is what worlds of one thread share: compiled scripts.
type Lab struct{ engine *engine }

// NewLab prepares a thread; patch changes the text of scripts, nil = as they are.
func NewLab(patch func(string) string) *Lab { return &Lab{engine: newEngine(patch)} }
