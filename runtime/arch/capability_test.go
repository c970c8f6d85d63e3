package arch

import "testing"

func TestParse(t *testing.T) {
	for _, s := range []string{"5.0", "8.9", "12.1", "13.0"} {
		c, err := Parse(s)
		if err != nil || c.String() != s {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	}
	if a, _ := Parse("12.0"); a != Of(12, 0) || a == Of(9, 0) {
		t.Error("equality does not go by the exact capability")
	}
	for _, s := range []string{"", "8", "8.", ".9", "8.9.1", "08.9", "8.x", "-8.9", "sm_89"} {
		if c, err := Parse(s); err == nil {
			t.Errorf("%q was read as %v", s, c)
		}
	}
}
