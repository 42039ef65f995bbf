package bootstrap

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/adapters/echohttp"
)

// Every scope of a buyer, and every scope of an operator.
var (
	buyerScopes    = []string{"order:create", "order:read", "order:cancel"}
	operatorScopes = []string{"stock:admin", "reconcile:run", "ops:read"}
)

func (p *program) tokenCommand() *cobra.Command {
	var sub, scope string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "token", Short: "Print a bearer token, where this machine holds the signing key",
		Example: "  seckill token --sub alice --scope order:create,order:read\n" +
			"  seckill token --sub ops --scope \"stock:admin reconcile:run ops:read\" --ttl 30m",
		RunE: func(*cobra.Command, []string) error {
			scopes := strings.FieldsFunc(scope, func(r rune) bool { return r == ',' || r == ' ' })
			for _, s := range scopes {
				if !knownScope(s) {
					return withExit(ExitUsage, fmt.Errorf("--scope: there is no %q; there are %s", s,
						strings.Join(append(append([]string{}, buyerScopes...), operatorScopes...), " ")))
				}
			}
			if sub == "" {
				return withExit(ExitUsage, errors.New("--sub: say whom the token names"))
			}
			if ttl <= 0 {
				return withExit(ExitUsage, errors.New("--ttl: must be a positive time"))
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			tokens, err := tokensOf(c)
			if err != nil {
				return err
			}
			token, err := tokens.Issue(sub, scopes, ttl)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.stdout, token)
			return err
		},
	}
	cmd.Flags().StringVar(&sub, "sub", "", "whom the token names (an id)")
	cmd.Flags().StringVar(&scope, "scope", strings.Join(buyerScopes, " "), "what it may do, by commas or spaces")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it counts")
	return cmd
}

func knownScope(s string) bool {
	for _, known := range append(append([]string{}, buyerScopes...), operatorScopes...) {
		if s == known {
			return true
		}
	}
	return false
}

// tokensOf makes and checks tokens with the configured key; an embedded service without one uses its folder's.
func tokensOf(c Config) (*echohttp.Tokens, error) {
	key := c.Auth.Key
	if key == "" && c.Embedded() {
		var err error
		if key, err = folderKey(c.Data); err != nil {
			return nil, err
		}
	}
	return echohttp.NewTokens([]byte(key), c.Auth.Issuer, c.Auth.Audience)
}
