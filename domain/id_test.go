package domain_test

import (
	"errors"
	"strings"
	"testing"

	"seckill/domain"
)

func TestIDsOutsideTheAlphabetAreRefusedAndNameTheirField(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "Z9", "a.b_c-d:e@f", "0", strings.Repeat("x", 64)} {
		if err := domain.CheckID("token", id); err != nil {
			t.Errorf("%q refused: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "-a", ":a", "@", "a b", "a|b", "a/b", "a%b", "a\nb", "a\x00", "é", "😀", "p}1", "a{", strings.Repeat("x", 65), "a "} {
		err := domain.CheckID("token", id)
		var e *domain.Error
		if !errors.As(err, &e) || e.Code != domain.CodeInvalidRequest || e.Field != "token" {
			t.Errorf("%q: %v, want a refusal that names the field", id, err)
		}
	}
}

func TestKeysWithTheSameJoinedPartsAreDifferent(t *testing.T) {
	t.Parallel()
	a, err1 := domain.NewKey("p", "a:b", "c")
	b, err2 := domain.NewKey("p", "a", "b:c")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if a == b || a.String() == b.String() || a.Compare(b) == 0 {
		t.Errorf("%v and %v are taken for one", a, b)
	}
	if upper, _ := domain.NewKey("P", "a:b", "c"); upper == a || upper.Compare(a) >= 0 {
		t.Error("ids are not compared byte by byte")
	}
}

func FuzzCheckID(f *testing.F) {
	for _, s := range []string{"a", ".", "a:b", "a|b", "\xff", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ok := domain.CheckID("x", s) == nil
		if ok && (len(s) == 0 || len(s) > domain.IDMax || strings.ContainsAny(s, "{}|/% \n\x00\x01\x02") || s[0] == '.') {
			t.Errorf("%q was taken", s)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("p", "u", "t")
	f.Add("p|u", "u|t", "")
	f.Add("a:b", "c", "@")
	f.Fuzz(func(t *testing.T, product, user, token string) {
		key, err := domain.NewKey(product, user, token)
		if err != nil {
			if !errors.Is(err, domain.ErrInvalidRequest) || !key.IsZero() {
				t.Errorf("%v with %v", key, err)
			}
			return
		}
		parts := strings.Split(key.String(), "|")
		if len(parts) != 3 || parts[0] != product || parts[1] != user || parts[2] != token || key.IsZero() {
			t.Errorf("%q %q %q became %s", product, user, token, key)
		}
		again, err := domain.NewKey(parts[0], parts[1], parts[2])
		if err != nil || again != key || key.Compare(again) != 0 {
			t.Errorf("%s came back as %s, %v", key, again, err)
		}
	})
}
