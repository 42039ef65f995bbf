package harness

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Request and response codes of RocketMQ's remoting protocol that we use.
const (
	codeCreateTopic = 17
	codeSetBroker   = 25
	codeDeleteTopic = 215
	codeForgetTopic = 216 // delete at the name server
	codeRoute       = 105
	codeClusterInfo = 106
	codeConsumers   = 38

	codeSuccess = 0

	remotingWithin   = 5 * time.Second
	remotingFrameMax = 16 << 20
)

// remotingCall sends one request, with text as its body, and reads its answer. A frame is its length,
// the header's length, a JSON header and the body. An answer with another code
// than success is an error with the server's own remark.
func remotingCall(ctx context.Context, addr string, code int, fields map[string]string, text ...byte) (answer int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, remotingWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	if err := writeFrame(conn, code, fields, text); err != nil {
		return 0, nil, fmt.Errorf("request %d to %s: %w", code, addr, err)
	}
	answer, remark, body, err := readFrame(conn)
	if err != nil {
		return 0, nil, fmt.Errorf("answer to %d from %s: %w", code, addr, err)
	}
	if answer != codeSuccess {
		return answer, nil, fmt.Errorf("request %d to %s: code %d: %s", code, addr, answer, remark)
	}
	return answer, body, nil
}

func writeFrame(conn io.Writer, code int, fields map[string]string, body []byte) error {
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "GO", "version": 317, "opaque": 1, "flag": 0, "extFields": fields,
	})
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	_, err = conn.Write(append(append(frame, header...), body...))
	return err
}

func readFrame(conn io.Reader) (code int, remark string, body []byte, err error) {
	var length uint32
	if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
		return 0, "", nil, err
	}
	if length < 4 || length > remotingFrameMax {
		return 0, "", nil, fmt.Errorf("a frame of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return 0, "", nil, err
	}
	headerLength := binary.BigEndian.Uint32(frame) & 0xffffff
	if headerLength > length-4 {
		return 0, "", nil, errors.New("a header longer than its frame")
	}
	var header struct {
		Code   int    `json:"code"`
		Remark string `json:"remark"`
	}
	if err := json.Unmarshal(frame[4:4+headerLength], &header); err != nil {
		return 0, "", nil, err
	}
	return header.Code, header.Remark, frame[4+headerLength:], nil
}
