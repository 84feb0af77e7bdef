package sim

import "testing"

// A scenario whose moves never end would prove nothing: slots must go there and back.
func TestSlotMoves_Happen(t *testing.T) {
	if testing.Short() {
		t.Skip("a world of moves takes some seconds")
	}
	w := NewWorld(Find("slotmove-3"), 1, NewLab())
	if v := w.Play(); v != nil {
		t.Fatal(v)
	}
	if w.moves < 3 || w.checker().grants < 100 {
		t.Errorf("%d moves and %d grants", w.moves, w.checker().grants)
	}
}
