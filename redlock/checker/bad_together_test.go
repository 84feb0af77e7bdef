package checker

// bad_together_test.go: histories that no lock for several holders can have.

// of is a permit among more or fewer than two.
func of(limit int, e CallRecord) CallRecord {
	e.Limit = limit
	return e
}

func badReaders() []badHistory {
	return []badHistory{
		{"a writer while another token reads", "EL", History{shr("a", 0, 1, 100), acq("b", 10, 11, 10)}},
		{"a writer while the last of three reads", "EL", History{shr("a", 0, 1, 10), shr("b", 0, 1, 20), shr("c", 0, 1, 100), acq("d", 50, 51, 10)}},
		{"a reader while another token writes", "EL", History{acq("a", 0, 1, 100), shr("b", 10, 11, 10)}},
		{"two writers", "EL", History{acq("a", 0, 1, 100), acq("b", 10, 11, 10)}},
		{"two writers ask at the same instants", "EL", History{acq("a", 0, 10, 100), acq("b", 0, 10, 100)}},
		{"a reader and a writer ask at the same instants", "EL", History{shr("a", 0, 10, 100), acq("b", 0, 10, 100)}},
		{"a writer one millisecond early", "EL", History{shr("a", 0, 1, 100), acq("b", 90, 100, 10)}},
		{"a reader one millisecond early", "EL", History{acq("a", 0, 1, 100), shr("b", 90, 100, 10)}},
		{"one of two readers has released", "EL", History{shr("a", 0, 1, 100), shr("b", 0, 1, 100), rel1("a", 5, 6), acq("c", 10, 11, 10)}},
		{"a stranger's release frees no reader", "EL", History{shr("a", 0, 1, 100), rel0("c", 5, 6), acq("b", 10, 11, 10)}},
		{"a reader joins a token that became the writer", "EL", History{shr("a", 0, 1, 100), acq("a", 10, 11, 100), shr("b", 20, 21, 10)}},
		{"a reader becomes the writer beside another", "EL", History{shr("a", 0, 1, 100), shr("b", 2, 3, 100), acq("a", 10, 11, 50)}},
		{"both readers become the writer", "EL", History{shr("a", 0, 1, 100), shr("b", 2, 3, 100), acq("a", 10, 20, 50), acq("b", 10, 20, 50)}},
		{"stepped down, and another writes", "EL", History{acq("a", 0, 1, 100), shr("a", 10, 11, 100), acq("b", 20, 21, 10)}},
		{"within a reader's extended time", "EL", History{shr("a", 0, 1, 10), ext("a", 5, 6, 100), acq("b", 50, 51, 10)}},
		{"within a writer's extended time", "EL", History{acq("a", 0, 1, 10), ext("a", 5, 6, 100), shr("b", 50, 51, 10)}},
		{"an extend by no holder", "CL", History{shr("a", 0, 1, 100), shr("b", 0, 1, 10), ext("c", 5, 6, 100)}},
		{"an extend by a reader although a writer had it", "CL", History{shr("a", 0, 1, 10), acq("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"an extend by a writer although a writer had it", "CL", History{acq("a", 0, 1, 10), acq("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"an extend by a writer although a reader had it", "L", History{acq("a", 0, 1, 10), shr("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"an extend after the release was answered", "CL", History{shr("a", 0, 1, 100), rel1("a", 5, 6), ext("a", 10, 11, 10)}},
		{"a writer granted and released in no time beside a reader", "L", History{shr("a", 0, 1, 100), acq("b", 10, 11, 100), rel1("b", 11, 12)}},
		{"two waiting writers served by one release", "EL", History{acq("a", 0, 1, 100), acq("b", 5, 55, 100), acq("c", 6, 56, 100), rel1("a", 50, 51)}},
		{"a waiting writer and a waiting reader served by one release", "EL", History{acq("a", 0, 1, 100), acq("b", 5, 55, 100), shr("c", 6, 56, 100), rel1("a", 50, 51)}},
		{"a long reader under many short ones", "EL", History{shr("z", 0, 1, 1000), shr("a", 2, 3, 5), shr("b", 10, 11, 5), shr("c", 20, 21, 5), acq("w", 40, 41, 5)}},
		{"in the second life of a reader's token", "EL", History{shr("a", 0, 1, 100), rel1("a", 5, 6), shr("a", 10, 11, 100), acq("b", 50, 51, 20)}},
		{"a refusal changes nothing", "EL", History{shr("a", 0, 1, 100), no(acq("b", 5, 6, 0)), acq("b", 10, 11, 10)}},
		{"beside a request that is never answered", "EL", History{shr("a", 0, 1, 100), never(acq("c", 2, 3, 0)), acq("b", 10, 11, 20)}},
		{"on the second of two keys", "EL", History{on("j", shr("a", 0, 1, 100)), shr("a", 0, 1, 100), acq("b", 2, 3, 100)}},
	}
}

func badPermits() []badHistory {
	return []badHistory{
		{"three of two", "EL", History{per("a", 0, 1, 100), per("b", 2, 3, 100), per("c", 4, 5, 10)}},
		{"two of one", "EL", History{of(1, acq("a", 0, 1, 100)), of(1, acq("b", 2, 3, 100))}},
		{"four of three", "EL", History{of(3, acq("a", 0, 1, 100)), of(3, acq("b", 0, 1, 100)), of(3, acq("c", 0, 1, 100)), of(3, acq("d", 4, 5, 10))}},
		{"three ask at once and all are served", "EL", History{per("a", 0, 10, 100), per("b", 0, 10, 100), per("c", 0, 10, 100)}},
		{"the third one millisecond early", "EL", History{per("a", 0, 1, 9), per("b", 2, 3, 100), per("c", 4, 9, 10)}},
		{"the third after an extend", "EL", History{per("a", 0, 1, 9), ext("a", 5, 6, 50), per("b", 2, 3, 100), per("c", 20, 21, 10)}},
		{"the third after a stranger's release", "EL", History{per("a", 0, 1, 100), per("b", 2, 3, 100), rel0("z", 4, 5), per("c", 6, 7, 10)}},
		{"two more after one release", "EL", History{per("a", 0, 1, 100), per("b", 2, 3, 100), rel1("a", 4, 5), per("c", 6, 7, 50), per("d", 8, 9, 50)}},
		{"two waiters served by one release", "EL", History{per("a", 0, 1, 100), per("b", 2, 3, 100), per("c", 4, 24, 50), per("d", 5, 25, 50), rel1("a", 20, 21)}},
		{"a repeat frees nothing", "EL", History{per("a", 0, 1, 100), per("b", 2, 3, 100), per("a", 10, 11, 100), per("c", 20, 21, 10)}},
		{"a permit beside a token that has the whole key", "EL", History{acq("a", 0, 1, 100), per("b", 2, 3, 10)}},
		{"the whole key beside a permit", "EL", History{per("a", 0, 1, 100), acq("b", 2, 3, 10)}},
		{"an extend of what a third took the place of", "L", History{per("a", 0, 1, 10), per("b", 2, 3, 100), per("c", 20, 21, 100), ext("a", 40, 41, 10)}},
		{"an extend after the whole key was another's", "CL", History{per("a", 0, 1, 10), acq("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"an extend by no holder", "CL", History{per("a", 0, 1, 100), ext("b", 5, 6, 100), per("b", 400, 401, 10)}},
		{"an extend after the release was answered", "CL", History{per("a", 0, 1, 100), rel1("a", 5, 6), ext("a", 10, 11, 10)}},
		{"two extend what only one place was left for", "L", History{per("a", 0, 1, 10), per("b", 0, 1, 10), per("c", 20, 21, 100), ext("a", 40, 41, 5), ext("b", 40, 41, 5)}},
		{"a third granted and released in no time", "L", History{per("a", 0, 1, 100), per("b", 2, 3, 100), per("c", 10, 11, 100), rel1("c", 11, 12)}},
		{"the third in the second life of a token", "EL", History{per("a", 0, 1, 100), rel1("a", 2, 3), per("a", 4, 5, 100), per("b", 6, 7, 100), per("c", 50, 51, 10)}},
		{"the sixth of five", "EL", History{of(5, acq("a", 0, 1, 100)), of(5, acq("b", 0, 1, 100)), of(5, acq("c", 0, 1, 100)), of(5, acq("d", 0, 1, 100)), of(5, acq("e", 0, 1, 100)), of(5, acq("f", 2, 3, 10))}},
		{"on the second of two keys", "EL", History{on("j", per("a", 0, 1, 100)), on("j", per("b", 0, 1, 100)), per("a", 0, 1, 100), per("b", 2, 3, 100), per("c", 4, 5, 10)}},
		{"beside a request that is never answered", "EL", History{per("a", 0, 1, 100), per("b", 0, 1, 100), never(per("c", 2, 3, 0)), per("d", 10, 11, 20)}},
	}
}

// set is one request for several keys.
func set(e CallRecord, keys ...string) (h History) {
	for _, key := range keys {
		h = append(h, on(key, e))
	}
	return h
}

func sets(all ...History) (h History) {
	for _, one := range all {
		h = append(h, one...)
	}
	return h
}

func badSeveral() []badHistory {
	short := func(token string, invoke, complete int) CallRecord { return acq(token, invoke, complete, 0) }
	return []badHistory{
		{"two sets that share a key", "EL", sets(set(acq("a", 0, 1, 100), "x", "y"), set(acq("b", 10, 11, 10), "y", "z"))},
		{"a set and one of its keys", "EL", sets(set(acq("a", 0, 1, 100), "x", "y"), set(acq("b", 10, 11, 10), "y"))},
		{"one of its keys and a set", "EL", sets(set(acq("a", 0, 1, 100), "y"), set(acq("b", 10, 11, 10), "x", "y"))},
		{"only one key was released", "EL", sets(set(acq("a", 0, 1, 100), "x", "y"), History{on("x", rel1("a", 5, 6))}, set(acq("b", 10, 11, 10), "x", "y"))},
		{"two sets at once in opposite order", "EL", sets(set(acq("a", 0, 10, 100), "x", "y"), set(acq("b", 0, 10, 100), "y", "x"))},
		{"the second key was extended", "EL", sets(set(acq("a", 0, 1, 10), "x", "y"), History{on("y", ext("a", 5, 6, 100))}, set(acq("b", 50, 51, 10), "x", "y"))},
		{"the second life of a set", "EL", sets(set(acq("a", 0, 1, 100), "x", "y"), set(rel1("a", 5, 6), "x", "y"), set(acq("a", 10, 11, 100), "x", "y"), set(acq("b", 20, 21, 10), "y"))},
		{"a set in the middle of a long chain", "EL", sets(set(acq("a", 0, 1, 10), "x", "y"), set(acq("b", 20, 21, 100), "y", "z"), set(acq("c", 40, 41, 10), "z", "x"))},
		// Of each key by itself there is an order: a has x only before b, b has y only
		// before c, and c has z only before a. All of them are over within their calls.
		{"three in a ring, each before the next", "L", sets(
			set(short("a", 0, 40), "z", "x"), set(short("b", 0, 40), "x", "y"), set(short("c", 0, 40), "y", "z"),
			History{on("x", ext("b", 41, 50, 0)), on("y", ext("c", 41, 50, 0)), on("z", ext("a", 41, 50, 0))})},
	}
}

func goodSeveral() []togetherHistory {
	return []togetherHistory{
		{"one set after another", "", sets(set(acq("a", 0, 1, 100), "x", "y"), set(rel1("a", 5, 6), "x", "y"), set(acq("b", 10, 11, 10), "y", "z"))},
		{"sets that share nothing", "", sets(set(acq("a", 0, 1, 100), "x", "y"), set(acq("b", 0, 1, 100), "z", "w"))},
		{"a set while the release is under way", "", sets(set(acq("a", 0, 1, 100), "x", "y"), set(rel1("a", 5, 20), "x", "y"), set(acq("b", 6, 15, 10), "y"))},
		{"one key of a set is given back and taken", "", sets(set(acq("a", 0, 1, 100), "x", "y"), History{on("x", rel1("a", 5, 6))}, set(acq("b", 10, 11, 10), "x", "z"))},
		{"a set whose answer is not known, and another", "", sets(set(unknown(acq("a", 0, 1, 0)), "x", "y"), set(acq("b", 10, 11, 10), "y", "z"))},
		{"the same token asks for the set again", "", sets(set(acq("a", 0, 1, 100), "x", "y"), set(acq("a", 10, 11, 100), "x", "y"))},
	}
}
