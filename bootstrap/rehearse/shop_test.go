package rehearse_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application"
)

// shop is both doors of a service over a map. Its zero dishonesties make it an honest one.
type shop struct {
	oversells       bool          // sells three units more than there are
	loses           bool          // forgets the second accepted order, as often as its buyer asks
	confirmsRefused bool          // one refusal becomes a confirmed order
	sellsTwice      bool          // a repeat is sold as a new purchase
	takesBack       bool          // a repeat of an accepted purchase is refused
	mixesUp         bool          // a repeat is shown another buyer's order
	neverDrains     bool          // says that something is always in flight
	admits          string        // says itself that this invariant is broken
	mute            bool          // tells no trace
	shaky           bool          // every third answer is 503, every seventh a torn connection, after the fact
	stalls          time.Duration // stands still once, for so long
	silent          bool          // 503 for ever
	reply           func(n int64) // called for each purchase

	mu        sync.Mutex
	looks     atomic.Int64 // at the pipeline
	products  map[string]*stock
	purchases int64
	stallOnce sync.Once
}

type stock struct {
	total, left int64
	orders      map[string]*sold // by user and token
	refusals    int
	hidden      string // key of the order that was refused and is there all the same
	lost        string // key of the order that was accepted and is not kept
	confirmed   int64
}

type sold struct {
	Product  string `json:"productId"`
	User     string `json:"userId"`
	Token    string `json:"token"`
	Quantity int64  `json:"quantity"`
	Status   string `json:"status"`
}

func open(t *testing.T, s *shop) string {
	t.Helper()
	s.products = map[string]*stock{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/v1/trace", s.trace)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.HandleFunc("PUT /admin/v1/products/{product}", s.put)
	mux.HandleFunc("GET /admin/v1/products/{product}", s.view)
	mux.HandleFunc("GET /admin/v1/pipeline", s.pipeline)
	mux.HandleFunc("GET /admin/v1/verification", s.verification)
	mux.HandleFunc("POST /api/v1/products/{product}/orders", s.buy)
	mux.HandleFunc("GET /api/v1/products/{product}/orders/{token}", s.show)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, code string) {
	answerJSON(w, status, map[string]string{"code": code})
}

func (s *shop) put(w http.ResponseWriter, r *http.Request) {
	var body struct{ Total int64 }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer operator" {
		problem(w, http.StatusBadRequest, "invalid-request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := body.Total
	if s.oversells {
		left += 3
	}
	s.products[r.PathValue("product")] = &stock{total: body.Total, left: left, orders: map[string]*sold{}}
	answerJSON(w, http.StatusCreated, application.StockView{State: "open"})
}

func (s *shop) view(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, application.StockView{State: "open", Gate: &application.GateSide{}})
}

func (s *shop) pipeline(w http.ResponseWriter, _ *http.Request) {
	s.looks.Add(1)
	var open int64
	if s.neverDrains {
		open = 1
	}
	answerJSON(w, http.StatusOK, application.PipelineView{OpenFlows: &open})
}

func (s *shop) verification(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.products[r.URL.Query().Get("productId")]
	v := application.Verification{Products: 1, Drained: !s.neverDrains, Holds: true}
	for _, o := range p.orders {
		v.Orders++
		if o.Status == application.OrderConfirmed {
			v.Confirmed++
			v.Units += o.Quantity
		}
	}
	v.Units = min(v.Units, p.total) // a dishonest shop does not tell
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		i := application.InvariantResult{Name: name, Verdict: "holds", Checked: 1}
		if name == "D" {
			i.Verdict = "unknown" // there is no journal
		}
		if name == s.admits {
			i.Verdict, i.Broken, i.Findings = "broken", 1, []application.Finding{{Detail: "admitted"}}
		}
		v.Invariants = append(v.Invariants, i)
	}
	answerJSON(w, http.StatusOK, v)
}

func (s *shop) buy(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.purchases++
	n := s.purchases
	s.mu.Unlock()
	if s.reply != nil {
		s.reply(n)
	}
	if s.silent {
		problem(w, http.StatusServiceUnavailable, "rebuilding")
		return
	}
	if s.stalls > 0 {
		s.stallOnce.Do(func() {
			s.mu.Lock()
			time.Sleep(s.stalls)
			s.mu.Unlock()
		})
	}
	status, body, replayed := s.decide(r)
	if s.shaky && n%7 == 0 {
		panic(http.ErrAbortHandler)
	}
	if s.shaky && n%3 == 0 {
		problem(w, http.StatusServiceUnavailable, "outcome-unknown")
		return
	}
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	answerJSON(w, status, body)
}

func (s *shop) decide(r *http.Request) (status int, body any, replayed bool) {
	user := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	product, token := r.PathValue("product"), r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.products[product]
	key := user + "/" + token
	if o := p.orders[key]; o != nil {
		switch {
		case s.confirmsRefused && key == p.hidden: // refused again, or the repeat would make an honest shop of it
			return http.StatusConflict, map[string]string{"code": "stock-not-enough"}, false
		case s.sellsTwice:
			p.left--
			return http.StatusAccepted, o, false
		case s.takesBack:
			return http.StatusConflict, map[string]string{"code": "stock-not-enough"}, false
		case s.mixesUp:
			other := *o
			other.Token = "another"
			return http.StatusOK, other, true
		}
		return http.StatusOK, o, true
	}
	o := &sold{product, user, token, 1, application.OrderConfirmed}
	if p.left <= 0 {
		p.refusals++
		if s.confirmsRefused && p.refusals == 2 {
			p.orders[key], p.hidden = o, key
		}
		return http.StatusConflict, map[string]string{"code": "stock-not-enough"}, false
	}
	p.left--
	p.confirmed++
	if s.loses && p.confirmed == 2 {
		p.lost = key
	}
	if key != p.lost { // lost for good, or a repeat would make an honest shop of it
		p.orders[key] = o
	}
	pending := *o
	pending.Status = application.OrderPending
	return http.StatusAccepted, pending, false
}

func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	user := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.products[r.PathValue("product")].orders[user+"/"+r.PathValue("token")]
	if o == nil {
		problem(w, http.StatusNotFound, "order-not-found")
		return
	}
	answerJSON(w, http.StatusOK, o)
}

// trace says that every order took 40 ms from deduction to row.
func (s *shop) trace(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.products[q.Get("productId")].orders[q.Get("uid")+"/"+q.Get("token")] == nil || s.mute {
		problem(w, http.StatusNotFound, "order-not-found")
		return
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	answerJSON(w, http.StatusOK, application.TraceView{Flow: &application.TraceFlow{At: at},
		Order: &application.TraceOrder{CreatedAt: at.Add(40 * time.Millisecond)}})
}
