// The cost of each further pair of masters, in groups of three to nine. The peer runs on
// the same number of masters.

package main

import "fmt"

func sizeScenarios() []scenario {
	const n = 64
	var all []scenario
	for _, masters := range []int{3, 5, 7, 9} {
		o := testbedOptions{masters: masters}
		peer := fmt.Sprintf("redsync + go-redis, %d masters, %s", masters, callers(n))
		all = append(all,
			scenario{name: peer, page: pageSizes, run: onOwnTestbed(o, pairs(n, openRedsync))},
			scenario{
				name: fmt.Sprintf("daemon, one multiplexed client, %d masters, %s", masters, callers(n)),
				page: pageSizes, peer: peer, run: onOwnTestbed(o, pairs(n, openMultiplexed)),
			})
	}
	return all
}
