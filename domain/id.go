package domain

import "fmt"

// IDMax is the longest product, user or token, in bytes.
const IDMax = 64

// CheckID reports whether s may name a product, a user or a token: 1 to IDMax characters
// of A–Z a–z 0–9 . _ - : @, the first a letter or a digit. Ids are compared byte by byte.
// field names the offending input in the error, which has CodeInvalidRequest.
func CheckID(field, s string) error {
	if s == "" {
		return invalid(field, "must not be empty")
	}
	if len(s) > IDMax {
		return invalid(field, fmt.Sprintf("must have at most %d characters", IDMax))
	}
	if idBytes[s[0]] != letterOrDigit {
		return invalid(field, "must start with a letter or a digit")
	}
	for i := 1; i < len(s); i++ {
		if idBytes[s[i]] == 0 {
			return invalid(field, "may hold only letters, digits and . _ - : @")
		}
	}
	return nil
}

const (
	letterOrDigit = iota + 1
	otherIDByte
)

// idBytes says of each byte what it may be in an id; zero: nothing. A purchase's ids are checked a dozen times on
// their way.
var idBytes = func() (kinds [256]uint8) {
	for c := range kinds {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			kinds[c] = letterOrDigit
		case c == '.' || c == '_' || c == '-' || c == ':' || c == '@':
			kinds[c] = otherIDByte
		}
	}
	return kinds
}()

// Key names one deduction: a product, the user who asked and the user's token.
// It is comparable and its parts are valid ids.
type Key struct{ product, user, token string }

// NewKey checks the three ids; the error has CodeInvalidRequest and names the field.
func NewKey(product, user, token string) (Key, error) {
	if err := CheckID("productId", product); err != nil {
		return Key{}, err
	}
	if err := CheckID("userId", user); err != nil {
		return Key{}, err
	}
	if err := CheckID("token", token); err != nil {
		return Key{}, err
	}
	return Key{product, user, token}, nil
}

// ChangeUser stands where a buyer would in the key of a stock change. It is no id, so no buyer can have it.
const ChangeUser = "+stock"

// ChangeKey names one stock change of a product by the operator's token; the error has CodeInvalidRequest.
func ChangeKey(product, token string) (Key, error) {
	if err := CheckID("productId", product); err != nil {
		return Key{}, err
	}
	if err := CheckID("token", token); err != nil {
		return Key{}, err
	}
	return Key{product, ChangeUser, token}, nil
}

// StoredKey reads a key back from where this program wrote it: a buyer's, or a stock change's. What comes
// from outside goes through NewKey or ChangeKey, so that nobody can pass for the other.
func StoredKey(product, user, token string) (Key, error) {
	if user == ChangeUser {
		return ChangeKey(product, token)
	}
	return NewKey(product, user, token)
}

// IsChange reports whether k names a stock change.
func (k Key) IsChange() bool { return k.user == ChangeUser }

// Product is the product's id.
func (k Key) Product() string { return k.product }

// User is the buyer's id; ChangeUser for a stock change.
func (k Key) User() string { return k.user }

// Token is the idempotency token that the buyer, or the operator, chose.
func (k Key) Token() string { return k.token }

// IsZero reports whether k was never made by a constructor.
func (k Key) IsZero() bool { return k.product == "" }

// String joins the parts by a character that no id can hold.
func (k Key) String() string { return k.product + "|" + k.user + "|" + k.token }

// Compare orders keys by product, user and token, byte by byte.
func (k Key) Compare(o Key) int {
	for _, p := range [3][2]string{{k.product, o.product}, {k.user, o.user}, {k.token, o.token}} {
		if p[0] < p[1] {
			return -1
		}
		if p[0] > p[1] {
			return 1
		}
	}
	return 0
}
