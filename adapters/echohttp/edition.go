package echohttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

// tagEdition puts a product's edition into ETag; one that could not be read has none.
func tagEdition(c echo.Context, edition string) {
	if edition != "" {
		c.Response().Header()["Etag"] = []string{`"` + edition + `"`}
	}
}

// matched judges If-Match, and gives the edition that an edit may depend on: empty where none is asked for.
func (d operatorsDoor) matched(ctx context.Context, c echo.Context, product string) (string, error) {
	wanted, there := c.Request().Header["If-Match"]
	if !there {
		return "", nil
	}
	edition, err := d.deps.Stock.Edition(ctx, product)
	if errors.Is(err, domain.ErrProductNotFound) && c.Request().Method == http.MethodPut {
		return "", errStale
	}
	if err != nil {
		return "", err
	}
	tags := strings.Split(strings.Join(wanted, ","), ",") // an edition holds no comma
	for i := range tags {
		tags[i] = strings.Trim(tags[i], " \t")
	}
	if !slices.Contains(tags, `"`+edition+`"`) && !slices.Equal(tags, []string{"*"}) {
		return "", errStale
	}
	return edition, nil
}

var errStale = domain.NewError(domain.CodeEditionOutdated, "If-Match names another edition of the product than there is", nil)
