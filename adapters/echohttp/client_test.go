package echohttp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"seckill/adapters/doorclient"
)

// answered gives one answer to whatever is asked.
type answered struct{ res *http.Response }

func (a answered) Do(*http.Request) (*http.Response, error) { return a.res, nil }

// milliseconds of a time are always three digits at the doors, and as few as will do from time.Time.
var milliseconds = regexp.MustCompile(`\.\d{3}Z"`)

func shortest(fraction []byte) []byte {
	return []byte(strings.TrimRight(strings.TrimRight(string(fraction), `Z"`), "0.") + `Z"`)
}

// checkModel reads a JSON answer by the generated client, whose model must keep all that the door said.
func checkModel(t testing.TB, operation string, res *http.Response, body []byte) {
	t.Helper()
	if !strings.Contains(res.Header.Get("Content-Type"), "json") {
		return
	}
	copied := *res
	copied.Body = io.NopCloser(bytes.NewReader(body))
	client, err := doorclient.NewClientWithResponses("http://door.example", doorclient.WithHTTPClient(answered{&copied}))
	if err != nil {
		t.Fatal(err)
	}
	method := reflect.ValueOf(client).MethodByName(strings.ToUpper(operation[:1]) + operation[1:] + "WithResponse")
	if !method.IsValid() {
		t.Fatalf("the client has no %s", operation)
	}
	in := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < method.Type().NumIn()-1; i++ { // the last are editors
		v := reflect.New(method.Type().In(i)).Elem()
		if v.Kind() == reflect.String {
			v.SetString("x")
		}
		in = append(in, v)
	}
	out := method.Call(in)
	if err, failed := out[1].Interface().(error); failed {
		t.Fatalf("%s: the client cannot read %s: %v", operation, body, err)
	}
	kind := "JSON"
	if strings.Contains(res.Header.Get("Content-Type"), "problem+json") {
		kind = "ApplicationProblemJSON"
	}
	model := out[0].Elem().FieldByName(kind + strconv.Itoa(res.StatusCode))
	if !model.IsValid() || model.IsNil() {
		t.Fatalf("%s: the client has no model of %d, %s", operation, res.StatusCode, body)
	}
	kept, err := json.Marshal(model.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(kept, &got) != nil || json.Unmarshal(milliseconds.ReplaceAllFunc(body, shortest), &want) != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: the model keeps %s\nof %s", operation, kept, body)
	}
}
