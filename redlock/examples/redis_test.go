// This example guards data in Redis: the server that holds the data compares, in a
// script.

package examples

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

const setGuarded = `
if tonumber(redis.call('GET', KEYS[2]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1]) redis.call('SET', KEYS[1], ARGV[2]) return 1
`

func Example_redis() {
	server, err := miniredis.Run()
	must(err)
	defer server.Close()
	data, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	must(err)
	defer data.Close()
	script := rueidis.NewLuaScript(setGuarded)
	write := func(value string, fence int64) (int64, error) {
		return script.Exec(context.Background(), data, []string{"{cart:7}", "{cart:7}:fence"}, []string{fmt.Sprint(fence), value}).AsInt64()
	}

	stale := lock(sleeper, "cart:7", 1000)
	fence := lock(other, "cart:7", 30000)

	fmt.Println(write("two apples", fence))
	fmt.Println(write("nothing", stale))
	fmt.Println(server.Get("{cart:7}"))
	// Output:
	// 1 <nil>
	// 0 <nil>
	// two apples <nil>
}
