package rocketmq

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the broker's access control asks for it
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Questions of the remoting protocol that the library has no call for.
const (
	askBrokerConfig = 26
	askBrokerState  = 28
	askMaxOffset    = 30
	askRoute        = 105
	askCluster      = 106
	askConsumers    = 203
	askProducers    = 204

	answerFine        = 0
	answerSystemError = 1
	answerNoTopic     = 17
	answerNotOnline   = 206
)

const (
	askTimeout = 2 * time.Second // for one question, the dial included
	frameMax   = 8 << 20         // of an answer
	goVersion  = 317             // of the protocol, as the library says it
)

// remotingError is an answer that says no.
type remotingError struct {
	code   int
	remark string
}

func (e *remotingError) Error() string { return fmt.Sprintf("code %d: %s", e.code, e.remark) }

// askServer puts one question on a connection of its own, which is closed afterwards. A frame is its length, the
// header's length, a JSON header and the body.
func askServer(ctx context.Context, cfg Config, addr string, code int, fields map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	frame, err := requestFrame(code, signed(cfg, fields))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	return readAnswer(conn)
}

func requestFrame(code int, fields map[string]string) ([]byte, error) {
	header, err := json.Marshal(map[string]any{"code": code, "language": "GO", "version": goVersion, "opaque": 1, "flag": 0, "extFields": fields})
	if err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	return append(frame, header...), nil
}

// signed adds what the broker's access control wants: the values in the order of their names, signed.
func signed(cfg Config, fields map[string]string) map[string]string {
	all := maps.Clone(fields)
	if all == nil {
		all = map[string]string{}
	}
	if cfg.AccessKey == "" {
		return all
	}
	all["AccessKey"] = cfg.AccessKey
	var content strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		content.WriteString(all[name])
	}
	mac := hmac.New(sha1.New, []byte(cfg.SecretKey))
	mac.Write([]byte(content.String()))
	all["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return all
}

func readAnswer(conn io.Reader) ([]byte, error) {
	var length uint32
	if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length < 4 || length > frameMax {
		return nil, fmt.Errorf("an answer of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil, err
	}
	headerLength := binary.BigEndian.Uint32(frame) & 0xffffff // the high byte says that it is JSON
	if headerLength > length-4 {
		return nil, errors.New("a header longer than its answer")
	}
	var header struct {
		Code   int    `json:"code"`
		Remark string `json:"remark"`
	}
	if err := json.Unmarshal(frame[4:4+headerLength], &header); err != nil {
		return nil, err
	}
	if header.Code != answerFine {
		remark, _, _ := strings.Cut(header.Remark, "\n")
		return nil, &remotingError{header.Code, remark}
	}
	return frame[4+headerLength:], nil
}

// decodeLoose reads the broker's JSON, whose maps may have bare numbers for names.
func decodeLoose(body []byte, into any) error { return json.Unmarshal(quoteNames(body), into) }

// quoteNames puts quotes around names that are bare numbers.
func quoteNames(body []byte) []byte {
	out := make([]byte, 0, len(body)+16)
	inText, escaped := false, false
	for i := 0; i < len(body); i++ {
		c := body[i]
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case !inText && (c == '{' || c == ','):
			end := i + 1
			for end < len(body) && (body[end] == '-' || body[end] >= '0' && body[end] <= '9') {
				end++
			}
			if end > i+1 && end < len(body) && body[end] == ':' {
				out = append(append(append(out, '"'), body[i+1:end]...), '"')
				i = end - 1
			}
		}
	}
	return out
}
