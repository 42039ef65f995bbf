package echohttp

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/domain"
)

const (
	keyBytesMin   = 32 // HS256 is as strong as its key
	tokenBytesMax = 4096
	clockLeeway   = 10 * time.Second
	tokensKept    = 16384 // verified ones; about 6 MB when full
)

// errToken is all that a caller learns about a token that does not count.
var errToken = errors.New("the token is not valid")

// Identity is who a verified token speaks for.
type Identity struct {
	Subject string // an id of the domain's alphabet
	scope   string // as in the claim: words with one space between
}

// May reports whether the token grants the scope.
func (i Identity) May(scope string) bool {
	for rest := i.scope; rest != "" && scope != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if word == scope {
			return true
		}
	}
	return false
}

type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope,omitempty"`
}

// Tokens makes and checks bearer tokens: JWT, HS256 alone, one key.
type Tokens struct {
	key              []byte
	issuer, audience string
	parser           *jwt.Parser
	verified         *lru.Cache[string, verified]
}

// verified is what a token that was checked stands for, and until when.
type verified struct {
	who   Identity
	until time.Time
}

// NewTokens refuses a key under 32 bytes. An empty issuer or audience is neither set nor asked for.
func NewTokens(key []byte, issuer, audience string) (*Tokens, error) {
	if len(key) < keyBytesMin {
		return nil, fmt.Errorf("the signing key must have at least %d bytes", keyBytesMin)
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(clockLeeway),
		jwt.WithStrictDecoding(),
	}
	if issuer != "" {
		options = append(options, jwt.WithIssuer(issuer))
	}
	if audience != "" {
		options = append(options, jwt.WithAudience(audience))
	}
	kept, err := lru.New[string, verified](tokensKept)
	if err != nil {
		return nil, err
	}
	return &Tokens{slices.Clone(key), issuer, audience, jwt.NewParser(options...), kept}, nil
}

// Issue makes a token for sub, an id of the domain's alphabet, that runs out after ttl.
func (t *Tokens) Issue(sub string, scopes []string, ttl time.Duration) (string, error) {
	if err := domain.CheckID("sub", sub); err != nil {
		return "", err
	}
	now := time.Now()
	c := claims{Scope: strings.Join(scopes, " ")}
	c.Subject, c.Issuer = sub, t.issuer
	c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(ttl))
	if t.audience != "" {
		c.Audience = jwt.ClaimStrings{t.audience}
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(t.key)
}

// Verify checks signature, times, issuer, audience and the form of sub. The error never holds the token.
func (t *Tokens) Verify(token string) (Identity, error) {
	if len(token) > tokenBytesMax {
		return Identity{}, errToken
	}
	if known, there := t.verified.Get(token); there && time.Now().Before(known.until) {
		return known.who, nil
	}
	var c claims
	if _, err := t.parser.ParseWithClaims(token, &c, t.keyOf); err != nil {
		return Identity{}, errToken
	}
	if domain.CheckID("sub", c.Subject) != nil {
		return Identity{}, errToken
	}
	who := Identity{Subject: c.Subject, scope: c.Scope}
	t.verified.Add(strings.Clone(token), verified{who, c.ExpiresAt.Add(clockLeeway)})
	return who, nil
}

func (t *Tokens) keyOf(*jwt.Token) (any, error) { return t.key, nil }

// LogValue keeps the key out of every log.
func (t *Tokens) LogValue() slog.Value { return slog.StringValue(t.String()) }

// String keeps the key out of every text.
func (t *Tokens) String() string { return "tokens(redacted)" }
