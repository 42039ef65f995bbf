package redislua

// keys spells every key. The braces are Redis' hash tag; no id can hold one. Stock changes are flows of
// domain.ChangeUser.
type keys struct{ prefix string }

func (k keys) stock(product string) string { return k.prefix + ":{" + product + "}:stock" }
func (k keys) open(product string) string  { return k.prefix + ":{" + product + "}:open" }
func (k keys) claim(product string) string { return k.prefix + ":{" + product + "}:claim" }

func (k keys) flows(product, user string) string {
	return k.prefix + ":{" + product + "}:flow:" + user
}
