// How much does each further pair of masters cost? Groups of three to nine, the
// peer on masters of the same number.
package main

import "fmt"

func sizeScenarios() []scenario {
	const n = 64
	var all []scenario
	for _, masters := range []int{3, 5, 7, 9} {
		o := standOptions{masters: masters}
		peer := fmt.Sprintf("redsync + go-redis, %d masters, %s", masters, callers(n))
		all = append(all,
			scenario{name: peer, page: pageSizes, run: onAnother(o, pairs(n, openRedsync))},
			scenario{
				name: fmt.Sprintf("daemon, one multiplexed client, %d masters, %s", masters, callers(n)),
				page: pageSizes, peer: peer, run: onAnother(o, pairs(n, openMultiplexed)),
			})
	}
	return all
}
