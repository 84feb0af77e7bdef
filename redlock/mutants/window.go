package mutants

// window.go: rows of flushes that are under way at the same time. Their directed tests are in
// pool/window_test.go.

// brokenWindows: rows of patches of pool.
func brokenWindows() []Mutant {
	return []Mutant{
		patched("window-early", "the next flush is sent before the one in front of it has left",
			Change{"pool/window.go", "\tf.replies = link.ExchangeInWindow(f.commands, f.replies, func() {\n\t\tl.group.mu.Lock()\n\t\tdefer l.group.mu.Unlock()\n\t\t*turn, l.running = false, false\n\t\tl.wakeLocked()\n\t})\n",
				"\tonSent := func() {\n\t\tl.group.mu.Lock()\n\t\tdefer l.group.mu.Unlock()\n\t\t*turn, l.running = false, false\n\t\tl.wakeLocked()\n\t}\n\tif Broken(\"window-early\") {\n\t\tonSent()\n\t\tonSent = func() {}\n\t}\n\tf.replies = link.ExchangeInWindow(f.commands, f.replies, onSent)\n"}).in("farscripts-3"),
		patched("window-behind", "what is sent again may pass what is under way behind it",
			Change{"pool/bulk.go", "\tfor _, f := range behind {\n", "\tif Broken(\"window-behind\") {\n\t\tbehind = nil\n\t}\n\tfor _, f := range behind {\n"}).in("farscripts-3"),
		patched("window-again", "further flushes are sent while something waits to be sent again",
			Change{"pool/window.go", "c.stalled || c.lost || len(c.again) > 0 ||", "c.stalled || (c.lost || len(c.again) > 0) && !Broken(\"window-again\") ||"}).in("farscripts-3"),
		patched("window-register", "a register that falls between two flushes of a window goes unnoticed",
			Change{"pool/verify.go", "\tf.minRegister = max(f.minRegister, l.acked) ", "\tf.minRegister = max(f.minRegister, unlessBroken(\"window-register\", l.acked)) "}).in("farmemory-3").
			but("the next heartbeat notices it, too, and a quorum must have lost its votes within one window; not seen in a million executions. TestWindow_ARegisterThatFallsInsideEndsTheIncarnation is a directed test"),
		patched("window-youngest", "the youngest flush decides whether a master stands still",
			Change{"pool/connection.go", "\toldest := c.flushes[0]\n", "\toldest := c.flushes[0]\n\tif Broken(\"window-youngest\") {\n\t\toldest = c.flushes[len(c.flushes)-1]\n\t}\n"}).in("far-3").
			but("requests wait longer for a master that stands still; TestWindow_TheOldestFlushDecidesWhetherTheMasterStandsStill is a directed test"),
		patched("window-order", "flushes are settled in the order in which their answers are noticed",
			Change{"pool/window.go", "\tf.answered = true\n", "\tf.answered = true\n\tif i := slices.Index(c.flushes, f); i > 0 && Broken(\"window-order\") {\n\t\tc.flushes[0], c.flushes[i] = f, c.flushes[0]\n\t}\n"}).in("far-3").
			but("the answers of one connection come in order, and its tasks mostly notice them so; TestWindow_ARequestIsSentBehindThoseThatAreUnderWay is a directed test"),
	}
}
