// A hash of texts that is the same in every run: a simulated world is a function of its seed.

package lease

// fnvBasis is the hash of an empty text.
const fnvBasis = 2166136261

func fnv1a(hash uint32, text string) uint32 {
	for i := range len(text) {
		hash = (hash ^ uint32(text[i])) * 16777619
	}
	return hash
}
