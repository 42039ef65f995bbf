package system_test

import (
	"sync"
	"testing"

	"seckill/adapters/system"
	"seckill/domain"
)

func TestIDsAreUniqueAndOfTheAlphabetUnderConcurrency(t *testing.T) {
	t.Parallel()
	ids := system.NewIDs()
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				a, u := ids.Attempt(), ids.Unique()
				if err := domain.CheckID("attempt", a); err != nil {
					t.Error(err)
				}
				if len(u) != 32 {
					t.Errorf("unique id %q has %d digits, want 32", u, len(u))
				}
				mu.Lock()
				if seen[a] || seen[u] {
					t.Errorf("id made twice: %s or %s", a, u)
				}
				seen[a], seen[u] = true, true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
