package link_test

import (
	"bufio"
	"net"
	"testing"
	"time"

	"seckill/test/harness/link"
)

// echo serves lines back.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if _, err := conn.Write(append(lines.Bytes(), '\n')); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// ask gives how long the answer took, or its error.
func ask(t *testing.T, conn net.Conn, within time.Duration) (time.Duration, error) {
	t.Helper()
	begun := time.Now()
	if err := conn.SetDeadline(begun.Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return 0, err
	}
	_, err := bufio.NewReader(conn).ReadString('\n')
	return time.Since(begun), err
}

func TestALinkIsSlowSilentOrTornAndWellAgain(t *testing.T) {
	t.Parallel()
	l := link.New(t, echo(t))
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn := dial()
	if _, err := ask(t, conn, time.Minute); err != nil {
		t.Fatal(err)
	}
	calm := l.Disturb("latency", link.Back, map[string]any{"latency": 300})
	if took, err := ask(t, conn, time.Minute); err != nil || took < 300*time.Millisecond {
		t.Errorf("slow: %v %v", took, err)
	}
	calm()
	calm = l.Disturb("timeout", link.Back, map[string]any{"timeout": 0})
	if _, err := ask(t, conn, 200*time.Millisecond); err == nil {
		t.Error("a silent link answered")
	}
	calm()
	calm = l.Disturb("reset_peer", link.There, map[string]any{"timeout": 0})
	if _, err := ask(t, dial(), time.Minute); err == nil {
		t.Error("a torn link answered")
	}
	calm()
	if _, err := ask(t, dial(), time.Minute); err != nil {
		t.Errorf("well again: %v", err)
	}
}
