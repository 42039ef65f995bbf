package redislua

// keys spells every key. The braces are Redis' hash tag; no id can hold one. Stock changes are flows of
// domain.ChangeUser. A buyer's key is kept short, since there are as many as buyers: with ids of 16
// characters and the usual prefix it has 43, and up to 44 fit a block of 48 bytes.
type keys struct{ prefix string }

func (k keys) stock(product string) string { return k.prefix + ":{" + product + "}:stock" }
func (k keys) open(product string) string  { return k.prefix + ":{" + product + "}:open" }
func (k keys) claim(product string) string { return k.prefix + ":{" + product + "}:claim" }

func (k keys) flows(product, user string) string {
	return k.prefix + ":{" + product + "}@" + user
}
