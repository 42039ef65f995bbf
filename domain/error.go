package domain

import "errors"

// Code is the stable name of a refusal or a fault. Texts may change, codes do not.
type Code string

// The codes that a buyer or an operator can meet.
const (
	CodeInvalidRequest  Code = "invalid-request"
	CodeProductNotFound Code = "product-not-found"
	CodeOrderNotFound   Code = "order-not-found"
	CodeReportNotFound  Code = "report-not-found"
	CodeParkedNotFound  Code = "parked-not-found"
	CodeChangeNotFound  Code = "change-not-found"
	CodeStockNotEnough  Code = "stock-not-enough"
	CodeLimitReached    Code = "limit-reached"
	CodeTokenRefused    Code = "token-refused"
	CodeTokenReused     Code = "token-reused"
	CodeSaleClosed      Code = "sale-closed"
	CodeProductExists   Code = "product-exists"
	CodePlanOutdated    Code = "plan-outdated"
	CodeEditionOutdated Code = "precondition-failed"
	CodeOutcomeUnknown  Code = "outcome-unknown"
	CodeBusy            Code = "busy"
	CodeRebuilding      Code = "rebuilding"
	CodeUnavailable     Code = "unavailable"
	CodeInternal        Code = "internal"
)

// Error is the one error type of the domain and of the ports. Two errors are the same
// for errors.Is when their codes are.
type Error struct {
	Code   Code
	Field  string // the input at fault, if one is
	Detail string // for people; never holds what a client must not see
	Cause  error  // what the adapter met; logged, never shown to a client
}

// Sentinels for errors.Is.
var (
	ErrInvalidRequest  = &Error{Code: CodeInvalidRequest}
	ErrProductNotFound = &Error{Code: CodeProductNotFound}
	ErrOrderNotFound   = &Error{Code: CodeOrderNotFound}
	ErrReportNotFound  = &Error{Code: CodeReportNotFound}
	ErrParkedNotFound  = &Error{Code: CodeParkedNotFound}
	ErrChangeNotFound  = &Error{Code: CodeChangeNotFound}
	ErrStockNotEnough  = &Error{Code: CodeStockNotEnough}
	ErrLimitReached    = &Error{Code: CodeLimitReached}
	ErrTokenRefused    = &Error{Code: CodeTokenRefused}
	ErrTokenReused     = &Error{Code: CodeTokenReused}
	ErrSaleClosed      = &Error{Code: CodeSaleClosed}
	ErrProductExists   = &Error{Code: CodeProductExists}
	ErrPlanOutdated    = &Error{Code: CodePlanOutdated}
	ErrEditionOutdated = &Error{Code: CodeEditionOutdated}
	ErrOutcomeUnknown  = &Error{Code: CodeOutcomeUnknown}
	ErrBusy            = &Error{Code: CodeBusy}
	ErrRebuilding      = &Error{Code: CodeRebuilding}
	ErrUnavailable     = &Error{Code: CodeUnavailable}
)

// NewError makes an error of that code with a text for people and, if there is one, its cause.
func NewError(code Code, detail string, cause error) *Error {
	return &Error{Code: code, Detail: detail, Cause: cause}
}

func invalid(field, detail string) *Error {
	return &Error{Code: CodeInvalidRequest, Field: field, Detail: field + " " + detail}
}

// Error gives the code and what is known beside it.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is compares codes.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf gives the code of the outermost domain error in err's chain; CodeInternal where there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
