package doorclient

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// recorder keeps the request that would have been sent.
type recorder struct{ sent *http.Request }

func (r *recorder) Do(sent *http.Request) (*http.Response, error) {
	r.sent = sent
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
}

// An id that the doors would refuse, and that no escaping but one at each end brings through.
const awkward = "a/b c%2F?d"

func TestEveryOperationOfTheDocumentIsAsked(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../echohttp/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			operations++
			sent := call(t, strings.ToUpper(operation.OperationID[:1])+operation.OperationID[1:])
			want := path
			for open := strings.IndexByte(want, '{'); open >= 0; open = strings.IndexByte(want, '{') {
				want = want[:open] + url.PathEscape(awkward) + want[strings.IndexByte(want, '}')+1:]
			}
			if sent.Method != method || sent.URL.EscapedPath() != "/below"+want {
				t.Errorf("%s: %s %s, want %s %s", operation.OperationID, sent.Method, sent.URL.EscapedPath(), method, want)
			}
			if got := sent.Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("%s: Authorization %q", operation.OperationID, got)
			}
			if sent.GetBody != nil {
				t.Errorf("%s may be sent twice", operation.OperationID)
			}
		}
	}
	if operations < 20 {
		t.Errorf("only %d operations", operations)
	}
}

// call calls the client's method with parameters of some value: awkward for each string.
func call(t *testing.T, name string) *http.Request {
	t.Helper()
	sent := new(recorder)
	client, err := New("http://door.example/below/", "secret", sent)
	if err != nil {
		t.Fatal(err)
	}
	method := reflect.ValueOf(client).MethodByName(name)
	if !method.IsValid() {
		t.Fatalf("the client has no %s", name)
	}
	in := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < method.Type().NumIn()-1; i++ { // the last are editors
		in = append(in, filled(method.Type().In(i)))
	}
	out := method.Call(in)
	if err, failed := out[1].Interface().(error); failed {
		t.Fatalf("%s: %v", name, err)
	}
	return sent.sent
}

func filled(kind reflect.Type) reflect.Value {
	v := reflect.New(kind).Elem()
	switch kind.Kind() {
	case reflect.String:
		v.SetString(awkward)
	case reflect.Pointer:
		v.Set(reflect.New(kind.Elem()))
	default: // a body, empty
	}
	return v
}

func TestQueriesAreEscapedOnce(t *testing.T) {
	t.Parallel()
	sent := new(recorder)
	client, err := New("http://door.example", "", sent)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.TracePurchase(context.Background(), &TracePurchaseParams{ProductID: "p:1@x", UID: "a&b=c+d", Token: awkward})
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{"productId": {"p:1@x"}, "uid": {"a&b=c+d"}, "token": {awkward}}
	if got := sent.sent.URL.Query(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, there := sent.sent.Header["Authorization"]; there {
		t.Error("no token is sent as one")
	}
}

func TestWhatIsNoDoorIsRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:8080", "localhost:8080", "ftp://door.example", "http://", "http://[::1", "/below"} {
		if _, err := New(base, "", nil); err == nil {
			t.Errorf("%q is a door", base)
		}
	}
}
