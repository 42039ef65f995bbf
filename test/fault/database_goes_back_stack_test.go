//go:build stack

package fault

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/application"
	"seckill/domain"
	"seckill/test/shop"
)

// Crash point 18 of the fault plan: the database is restored from a backup behind the running service. The gates
// notice, the products leave the sale, and the operators' views say why. Nobody is sold anything, and nothing is
// rebuilt until an operator says what becomes of the orders that only the gates still know.
func TestADatabaseThatGoesBack(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	const total, n = 100, 10
	restored, dropped := onSale(t, s, total, 0), onSale(t, s, total, 0)
	var kept, lost [2][]*purchase
	for i, product := range []string{restored, dropped} {
		kept[i] = crowdOf(product, "kept", n)
		atOnce(s, kept[i])
		holds(t, s, product, n, n, kept[i]...)
	}
	backup := dump(t, s.DSN)
	for i, product := range []string{restored, dropped} {
		lost[i] = crowdOf(product, "lost", n)
		atOnce(s, lost[i])
		holds(t, s, product, 2*n, 2*n, lost[i]...)
	}
	restore(t, s.DSN, backup)
	for _, product := range []string{restored, dropped} {
		wantDamaged(t, s, product)
		late := &purchase{product: product, user: "late", token: "t", quantity: 1}
		if late.buy(s); late.answer.Code() != domain.CodeRebuilding {
			t.Errorf("while the product is damaged: %v", late.answer)
		}
		if a := s.Admin(http.MethodPost, "/admin/v1/products/"+product+"/rebuild", map[string]string{"reason": "no choice"}); a.Status != http.StatusBadRequest {
			t.Errorf("without a choice: %v", a)
		}
		report := rebuildByHand(t, s, product, application.LostReport, http.StatusOK)
		if report.State != "damaged" || report.Lost != n || report.LostUnits != n || len(report.Flows) != n || report.Disagree != 0 {
			t.Errorf("the report: %+v", report)
		}
	}
	if a := rebuildByHand(t, s, restored, application.LostRestore, http.StatusAccepted); a.Restored != n || a.Dropped != 0 {
		t.Errorf("restored: %+v", a)
	}
	if a := rebuildByHand(t, s, dropped, application.LostDrop, http.StatusAccepted); a.Dropped != n || a.Restored != 0 {
		t.Errorf("dropped: %+v", a)
	}
	s.WaitOpen(restored)
	s.WaitOpen(dropped)
	more := crowdOf(restored, "more", n)
	atOnce(s, more)
	holds(t, s, restored, 3*n, 3*n, append(append(kept[0], lost[0]...), more...)...)
	holds(t, s, dropped, n, n, kept[1]...)
	for _, p := range lost[1] {
		s.WaitOrder(dropped, p.user, p.token, "cancelled")
		if p.buy(s); p.answer.Text("status") != "cancelled" {
			t.Errorf("a repeat of an order that was dropped: %v", p.answer)
		}
	}
	again := rebuildByHand(t, s, restored, "", http.StatusAccepted) // a healthy product
	if again.Was != "open" {
		t.Errorf("%+v", again)
	}
	shop.Eventually(t, time.Minute, "rebuilt and open again", func() (bool, string) {
		v, a := s.Stock(restored)
		return v.State == "open" && v.Epoch > 2, a.String()
	})
	s.WaitOpen(restored)
	holds(t, s, restored, 3*n, 3*n)
	s.Stop()
}

// wantDamaged waits until the product is out of the sale and the operators' views and the log say why.
func wantDamaged(t *testing.T, s *shop.Shop, product string) {
	t.Helper()
	shop.Eventually(t, time.Minute, "the product is damaged", func() (bool, string) {
		v, a := s.Stock(product)
		return v.State == "damaged" && strings.Contains(v.Reason, "the database went back"), a.String()
	})
	waitLog(t, s, "product_damaged", 1)
	shop.Eventually(t, time.Minute, "the pipeline lists it", func() (bool, string) {
		v := s.Pipeline()
		for _, suspended := range v.Suspended {
			if suspended == product {
				return true, ""
			}
		}
		return false, strings.Join(v.Suspended, " ")
	})
}

func rebuildByHand(t *testing.T, s *shop.Shop, product string, lost application.LostPolicy, status int) (answer application.RebuildAnswer) {
	t.Helper()
	body := map[string]string{"reason": "restored from a backup"}
	if lost != "" {
		body["lost"] = string(lost)
	}
	a := s.Admin(http.MethodPost, "/admin/v1/products/"+product+"/rebuild", body)
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != status {
		t.Fatalf("rebuild: %v", a)
	}
	return answer
}

// dump is a backup of the database, and restore puts it back while others work on it.
func dump(t *testing.T, dsn string) []byte {
	t.Helper()
	return client(t, "mariadb-dump", dsn, nil, "--single-transaction", "--skip-lock-tables")
}

func restore(t *testing.T, dsn string, backup []byte) {
	t.Helper()
	client(t, "mariadb", dsn, backup)
}

func client(t *testing.T, program, dsn string, in []byte, args ...string) []byte {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	args = append([]string{"--no-defaults", "--host=" + host, "--port=" + port, "--user=" + c.User}, append(args, c.DBName)...)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(cmd.Environ(), "MYSQL_PWD="+c.Passwd)
	cmd.Stdin = bytes.NewReader(in)
	var errText strings.Builder
	cmd.Stderr = &errText
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, errText.String())
	}
	return out
}
