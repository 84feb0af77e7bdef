// A peer in another language: node-redlock over ioredis, the most used form of the
// algorithm in JavaScript.

package main

import "path/filepath"

func nodeName(n int) string { return "node-redlock 5 + ioredis, " + callers(n) }

func nodeScenarios() []scenario {
	modules := filepath.Join(peerHome(), "node-redlock", "node_modules")
	p := program{name: "node-redlock", needs: modules, words: []string{"node", filepath.Join("peers", "node-redlock", "pairs.cjs"), modules}}
	var all []scenario
	for _, n := range []int{1, 8, 64, 256} {
		all = append(all, scenario{
			name: nodeName(n), page: pagePairs, peer: redsyncName(n), run: programRun(p, n),
		})
	}
	return all
}
