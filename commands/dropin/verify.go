// Does the script ever do something else than what was learned? Every constant
// of its own text is tried as token, as another's token, as a key, as a time;
// so are tokens of odd shapes and tokens that almost match.
package dropin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostConstants of a script are tried; each costs some ten runs.
const mostConstants = 24

// constants are the values that the script may compare with, each once.
func (p *program) constants() []string {
	slices.Sort(p.literals)
	p.literals = slices.Compact(p.literals)
	return p.literals
}

// refute tries to.
func (p *prober) refute() error {
	if n := len(p.program.constants()); n > mostConstants {
		return fmt.Errorf("it has %d constants to compare with, allowed are %d", n, mostConstants)
	}
	for _, step := range []func() error{p.again, p.asCalled, p.lengths, p.tokens, p.nearMisses, p.compares} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// try runs a scene that must be as learned.
func (p *prober) try(sc *scene, h Holding, what string, args ...any) error {
	same, err := p.agrees(sc, p.learned[h])
	if errors.Is(err, errRestart) {
		err = errors.New("its keys are used as different types")
	}
	if err == nil && !same {
		err = fmt.Errorf("it does something else %s", fmt.Sprintf(what, args...))
	}
	return err
}

// again: other random values.
func (p *prober) again() error {
	for h := range p.learned {
		if err := p.try(p.scene(Holding(h)), Holding(h), "each time"); err != nil {
			return err
		}
	}
	for _, s := range p.mixed {
		sc := p.scene(Absent)
		copy(sc.holds, s.holds)
		if same, err := p.agrees(sc, s); err != nil || !same {
			return errors.New("it does something else each time")
		}
	}
	return nil
}

// asCalled: the token of the call itself.
func (p *prober) asCalled() error {
	if p.token < 0 {
		return nil
	}
	for h := range p.learned {
		sc := p.scene(Holding(h))
		sc.setToken(p, p.call.Args[p.token])
		if err := p.try(sc, Holding(h), "with the token of the call"); err != nil {
			return err
		}
	}
	return nil
}

// lengths: leases much longer and shorter than what is asked for.
func (p *prober) lengths() error {
	for _, h := range []Holding{Mine, Other} {
		for _, ttl := range []int64{3, 1_203_457, 9_000_000_007} {
			sc := p.scene(h)
			sc.ttl = ttl
			if err := p.try(sc, h, "when %d ms are left", ttl); err != nil {
				return err
			}
		}
	}
	if p.time.Arg == 0 {
		return nil
	}
	for _, h := range []Holding{Absent, Mine} {
		p.coarse = p.coarse || p.time.Unit == Milliseconds && p.tryAsk(h, 31_500) != nil
		for _, ask := range []int64{1000, 86_400_000} {
			if err := p.tryAsk(h, ask); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *prober) tryAsk(h Holding, ask int64) error {
	sc := p.scene(h)
	sc.setAsk(p, ask)
	return p.try(sc, h, "when argument %d is %s", p.time.Arg, sc.call.Args[p.time.Arg-1])
}

// tokens of odd shapes. With a prefix they must be long enough.
func (p *prober) tokens() error {
	if p.token < 0 {
		return nil
	}
	n := max(16, len(p.call.Args[p.token]))
	for _, token := range []string{
		strings.Repeat("7", n), "-" + strings.Repeat("0", n), strings.Repeat("\x00\r\n\xff", n), " " + random(n), random(1024),
		strings.ToUpper(random(n)),
	} {
		for _, h := range []Holding{Absent, Mine, Other} {
			sc := p.scene(h)
			sc.setToken(p, token)
			sc.other = random(len(token))
			if err := p.try(sc, h, "with a token of %d bytes", len(token)); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearMisses: another token that almost matches is another token, unless the
// number of bytes to compare is an argument.
func (p *prober) nearMisses() error {
	if p.token < 0 {
		return nil
	}
	p.prefix = 0
	for i, value := range p.call.Args {
		n, ok := parseInt(value)
		if !ok || i == p.token || i == p.time.Arg-1 || n < shortestPrefix || n > int64(len(p.call.Args[p.token])) {
			continue
		}
		free := p.free[i]
		delete(p.free, i)
		is, err := p.isPrefix(int(n))
		if err != nil {
			return err
		}
		if is {
			p.prefix = i + 1
			return nil
		}
		if free {
			p.free[i] = true
		}
	}
	for _, almost := range []func(token string) string{
		func(t string) string { return t + "x" },
		func(t string) string { return t[:len(t)-1] },
		func(t string) string { return t[:len(t)/2] + random(len(t)-len(t)/2-1) + "y" },
		func(t string) string { return "9" + t[1:] },
		strings.ToUpper,
		func(t string) string { return " " + t + " " },
		func(t string) string { return t + "\x00" },
	} {
		sc := p.scene(Other)
		if sc.other = almost(sc.token); sc.other == sc.token {
			continue
		}
		if err := p.try(sc, Other, "when the key holds almost its token"); err != nil {
			return err
		}
	}
	return nil
}

// isPrefix: whatever begins with n bytes of the token is the caller's, and
// nothing that begins with fewer. A value that was replaced counts as renewed.
func (p *prober) isPrefix(n int) (bool, error) {
	sc := p.scene(Other)
	sc.other = sc.token[:n] + random(9)
	v, err := p.see(sc)
	if err != nil {
		return false, err
	}
	if !p.learned[Mine].shape.matches(v.reply, sc.call, "") || p.learned[Other].shape.matches(v.reply, sc.call, "") {
		return false, nil
	}
	sc = p.scene(Other)
	sc.other = sc.token[:n-1] + "_" + random(9)
	return p.agrees(sc, p.learned[Other])
}

// compares: the constants of the script.
func (p *prober) compares() error {
	for _, value := range p.program.constants() {
		if err := p.asText(value); err != nil {
			return err
		}
		if n, ok := parseInt(value); ok {
			if err := p.asNumber(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// asText: a constant as the token, as another one, as the name of a key. An
// empty one is none of these, and with a prefix a token has a least length.
func (p *prober) asText(value string) error {
	if value == "" {
		return nil
	}
	for _, h := range []Holding{Absent, Mine, Other} {
		if p.token >= 0 && p.prefix == 0 {
			sc := p.scene(h)
			sc.setToken(p, value)
			if err := p.try(sc, h, "when the token is %s", short(value)); err != nil {
				return err
			}
		}
		if len(p.call.Keys) == 0 {
			continue
		}
		sc := p.scene(h)
		sc.call.Keys[0] = value
		if err := p.try(sc, h, "when the key is %s", short(value)); err != nil {
			return err
		}
	}
	sc := p.scene(Other)
	sc.other = value
	return p.try(sc, Other, "when the key holds %s", short(value))
}

// asNumber: a constant and its neighbours as what is asked for and as what is
// left.
func (p *prober) asNumber(n int64) error {
	for _, n := range []int64{n - 1, n, n + 1} {
		if n <= 0 || n > clock {
			continue
		}
		sc := p.scene(Mine)
		if sc.ttl = n; p.time.Arg > 0 && sc.ask == n {
			continue
		}
		if err := p.try(sc, Mine, "when %d ms are left", n); err != nil {
			return err
		}
		if p.time.Arg == 0 || p.coarse && n%1000 != 0 {
			continue
		}
		if p.time.Unit == Seconds || p.time.Unit == UnixSeconds {
			n *= 1000
		}
		for _, h := range []Holding{Absent, Mine} {
			if err := p.tryAsk(h, n); err != nil {
				return fmt.Errorf("%w (constant %s)", err, strconv.FormatInt(n, 10))
			}
		}
	}
	return nil
}
