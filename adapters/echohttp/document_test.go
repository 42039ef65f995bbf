package echohttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seckill/domain"
)

func TestRoutesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	routes := map[string]string{} // to the right
	for _, r := range append(f.buyers.routes, f.operators.routes...) {
		routes[r.method+" "+templateOf(r.path)] = r.right
	}
	documented := map[string]string{}
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			right := "none"
			if op.Security != nil && len(*op.Security) == 1 {
				right = strings.Join((*op.Security)[0]["bearer"], " ")
			} else if op.Security != nil && len(*op.Security) == 0 {
				right = anyone
			}
			documented[method+" "+path] = right
		}
	}
	for name, right := range routes {
		if right == probe {
			right = anyone
		}
		if documented[name] != right {
			t.Errorf("%s needs %q, the document says %q", name, right, documented[name])
		}
	}
	for name := range documented {
		if _, there := routes[name]; !there {
			t.Errorf("%s is documented and no route", name)
		}
	}
}

func TestCodesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	schema := document(t).Components.Schemas["Code"].Value
	told := schema.Extensions["x-codes"].(map[string]any)
	var listed []string
	for _, e := range schema.Enum {
		listed = append(listed, e.(string))
	}
	for code, a := range answers {
		if !slices.Contains(listed, string(code)) {
			t.Errorf("%s is not listed", code)
		}
		want := fmt.Sprint(map[string]any{"retryable": a.retryable, "status": a.status})
		if got := fmt.Sprint(told[string(code)]); got != want {
			t.Errorf("%s: document %s, code %s", code, got, want)
		}
		if a.title == "" || http.StatusText(a.status) == "" {
			t.Errorf("%s has no title or no status", code)
		}
	}
	if len(listed) != len(answers) || len(told) != len(answers) {
		t.Errorf("document lists %d and tells %d codes, the table has %d", len(listed), len(told), len(answers))
	}
}

func TestEveryCodeIsAnsweredAsTheTableSays(t *testing.T) {
	t.Parallel()
	for code, a := range answers {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.order = nil
			p := problemOf(&requestError{code: code})
			if p.Code != code {
				t.Fatalf("problemOf gives %s", p.Code)
			}
			p = problemOf(fmt.Errorf("wrapped: %w", domain.NewError(code, "d", nil)))
			if p.Code != code || (p.Detail == "d") == (code == domain.CodeInternal) {
				t.Fatalf("problemOf gives %+v", p)
			}
			if a.retryable != (a.status >= 500 || a.status == http.StatusTooManyRequests) {
				t.Fatal("retryable is what may do better by itself")
			}
		})
	}
}
