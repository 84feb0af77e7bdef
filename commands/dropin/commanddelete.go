// The commands that delete a key: DEL, UNLINK, GETDEL, DELEX and DELIFEQ.

package dropin

func (c *commandCall) getDel() []branch {
	out := c.get()
	for _, b := range out {
		if b.value.truth() {
			b.path.remove(c.args[0].key)
		}
	}
	return out
}

// countKeys counts over all keys of a command, as DEL and EXISTS do.
func (c *commandCall) countKeys(each func(p *path, key int) (yes, no *path)) []branch {
	out := c.one(c.path, numberValue(0))
	for i := range c.args {
		key, ok := c.key(i)
		if !ok {
			return nil
		}
		var next []branch
		for _, b := range out {
			if c.signals[key] || b.value.kind == valueUnknown {
				b.value = luaValue{kind: valueUnknown}
			}
			if c.signals[key] {
				next = append(next, b)
				continue
			}
			yes, no := each(b.path, key)
			more := b.value
			more.n++
			next = append(next, twoBranches(yes, more, no, b.value)...)
		}
		out = next
	}
	return out
}

func (c *commandCall) del() []branch {
	return c.countKeys(func(p *path, key int) (yes, no *path) {
		no, yes = p.splitFree(key)
		if yes != nil {
			yes.remove(key)
		}
		return yes, no
	})
}

// delIfEqual is DELEX key IFEQ token and DELIFEQ key token.
func (c *commandCall) delIfEqual() []branch {
	key, ok := c.lock(0)
	if !ok {
		return nil
	}
	want := c.args[len(c.args)-1]
	if want.kind != valueArg || c.name == "delex" && (c.args[1].kind != valueText || upper(c.args[1].text) != "IFEQ") {
		c.refuse(c.line, "it compares with something that is not its token")
		return nil
	}
	if !c.token(c.line, key, want.arg) {
		return nil
	}
	yes, no := c.path.splitSelf(key)
	if yes != nil {
		yes.remove(key)
	}
	return twoBranches(yes, numberValue(1), no, numberValue(0))
}
