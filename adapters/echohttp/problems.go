package echohttp

import (
	"cmp"
	"context"
	"slices"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// advice is what the page of a code says: what happened, and what to do.
type advice struct{ means, do string }

// advices has every code of the table of answers.
var advices = map[domain.Code]advice{
	domain.CodeInvalidRequest:  {"A part of the request is not as it must be. Nothing was changed.", "errors names each input that is wrong, and why. Put it right and send it again."},
	codeUnauthenticated:        {"The bearer token is missing, has run out, or was not signed by this service.", "Get a new token and send it as Authorization: Bearer."},
	codeForbidden:              {"The token is good and lacks the scope of this route.", "detail names the scope. Get a token that has it."},
	domain.CodeSaleClosed:      {"The sale has not begun, has ended, or is paused by an operator. Nothing was bought.", "Look at the product: it says when it opens and closes."},
	domain.CodeProductNotFound: {"No product of this id was ever put on sale.", "Check the id; capital letters count."},
	domain.CodeOrderNotFound:   {"The caller has no order under this token. Somebody else's order is as absent as one that never was.", "Check product and token. A purchase whose answer was outcome-unknown is safe to send again."},
	domain.CodeReportNotFound:  {"There is no reconcile report of this id.", "The list of reports has the ids."},
	domain.CodeChangeNotFound:  {"There is no stock change under this key.", "The list of the product's stock changes has the keys. It is safe to send the change again."},
	domain.CodeParkedNotFound:  {"There is no parked message of this id.", "The list of parked messages has the ids. One that was replayed is no longer in it."},
	codeNoSuchRoute:            {"Nothing is served under this path at this door.", "The API page lists what is. Operators have a door of their own."},
	codeMethodNotAllowed:       {"The path is there, and does not know this method.", "The header Allow says which it knows."},
	domain.CodeStockNotEnough:  {"Fewer units are left than were asked for. Nothing was taken.", "The same token may win later, when units are given back."},
	domain.CodeLimitReached:    {"The buyer would have more units than one buyer may have. Nothing was taken.", "Ask for fewer units, or cancel an order first."},
	domain.CodeTokenRefused:    {"This token was refused for good: its purchase can never succeed.", "Buy under a new token."},
	domain.CodeProductExists:   {"The product is on sale with another total, window or limit. Nothing was changed.", "Change its stock by a signed delta; see the stock changes of the product."},
	domain.CodePlanOutdated:    {"The state has moved on since the dry run that the plan was made by. Nothing was repaired.", "Make a new dry run and apply that one."},
	domain.CodeEditionOutdated: {"If-Match names an edition of the product that is no longer the newest: somebody has changed it since. Nothing was changed.", "Read the product again and decide anew; its header ETag is what If-Match takes."},
	codeBodyTooLarge:           {"The body is larger than any request of this service.", "Send at most 4,096 bytes."},
	codeJSONOnly:               {"The body is not declared as JSON, or is compressed.", "Send Content-Type: application/json and no Content-Encoding."},
	domain.CodeTokenReused:     {"The token stands for something else already: another quantity, or another stock change. Nothing was changed.", "Use a new token for a new wish. The old one still shows what it stands for."},
	codeTooManyRequests:        {"The caller asks more often than it may.", "Wait as long as Retry-After says."},
	domain.CodeOutcomeUnknown:  {"The purchase was begun and its end is not known yet. Units may be taken. This is no refusal.", "Send the same purchase again with the same token, until it answers: it cannot buy twice. Do not buy under another token."},
	domain.CodeBusy:            {"The service has more to do than it can take on now. Nothing was taken.", "Wait as long as Retry-After says and send the same request again."},
	domain.CodeRebuilding:      {"The product's sale is being made ready, as at a start or after a loss of its fast store. Nothing was taken.", "Wait as long as Retry-After says. It opens by itself, as a rule within a minute."},
	domain.CodeUnavailable:     {"A part that this answer needs is away: the fast store, the broker or the database.", "/readyz says which one. The request is safe to send again."},
	domain.CodeInternal:        {"Something went wrong inside, and was logged.", "Tell the operator the request's id, which is instance. A purchase is safe to send again with the same token."},
}

// Problem is a code as it is explained to whoever met it.
type Problem struct {
	Code      domain.Code
	Status    int
	Title     string
	Retryable bool
	Means, Do string
}

func explain(code domain.Code, a answer) Problem {
	return Problem{code, a.status, a.title, a.retryable, advices[code].means, advices[code].do}
}

// Problems are those of every code, by status and code.
func Problems() []Problem {
	var all []Problem
	for code, a := range answers {
		all = append(all, explain(code, a))
	}
	slices.SortFunc(all, func(a, b Problem) int { return cmp.Or(a.Status-b.Status, cmp.Compare(a.Code, b.Code)) })
	return all
}

func (d *Door) listProblems(_ context.Context, c echo.Context, _ Identity) error {
	return d.writePage(c, "problems.html", Problems())
}

func (d *Door) showProblem(_ context.Context, c echo.Context, _ Identity) error {
	code := domain.Code(c.Param("code"))
	a, there := answers[code]
	if !there {
		return echo.ErrNotFound
	}
	return d.writePage(c, "problem.html", explain(code, a))
}
