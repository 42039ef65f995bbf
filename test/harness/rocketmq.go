package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	brokerName  = "broker-a"
	clusterName = "DefaultCluster"
)

// brokerConf has check-backs come within seconds, so that tests can wait for
// them; the other values are those of production.
const brokerConf = `brokerClusterName=` + clusterName + `
brokerName=` + brokerName + `
brokerId=0
brokerIP1=%[4]s
bindAddress=127.0.0.1
listenPort=%[1]d
namesrvAddr=%[2]s
storePathRootDir=%[3]s/store
storePathCommitLog=%[3]s/store/commitlog
flushDiskType=SYNC_FLUSH
brokerRole=ASYNC_MASTER
mappedFileSizeCommitLog=134217728
diskMaxUsedSpaceRatio=95
autoCreateTopicEnable=false
transactionTimeOut=2000
transactionCheckInterval=1000
transactionOpBatchInterval=500
transactionCheckMax=2880
`

// startRocketMQ starts a name server and a broker, and is done when the name
// server knows the broker.
func (s *Stack) startRocketMQ(ctx context.Context) error {
	if err := s.startNameServer(ctx); err != nil {
		return err
	}
	// The broker takes port-2 for fast requests and port+1 for replicas as well.
	port, err := freePort(-2, 1)
	if err != nil {
		return err
	}
	dir, err := s.javaHome("broker")
	if err != nil {
		return err
	}
	conf := filepath.Join(dir, "broker.conf")
	told := cmp.Or(s.parts.BrokerIP, "127.0.0.1")
	text := fmt.Sprintf(brokerConf, port, s.NameServer.Addr, dir, told)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	names := s.NameServer.Addr
	s.Broker = s.add(&Server{
		Name:    "rocketmq-broker",
		Addr:    loopback(port),
		logFile: filepath.Join(s.dir, "broker.log"),
		command: javaCommand(dir, "org.apache.rocketmq.broker.BrokerStartup", conf, "-Xms512m", "-Xmx1g"),
		ready: func(ctx context.Context) error {
			_, body, err := remotingCall(ctx, names, codeClusterInfo, nil)
			if err != nil {
				return err
			}
			if !bytes.Contains(body, []byte(net.JoinHostPort(told, strconv.Itoa(port)))) {
				return errors.New("the name server does not know the broker yet")
			}
			return dialable(ctx, loopback(port))
		},
	})
	return s.Broker.Start(ctx)
}

func (s *Stack) startNameServer(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	dir, err := s.javaHome("namesrv")
	if err != nil {
		return err
	}
	conf := filepath.Join(dir, "namesrv.conf")
	text := fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\n", port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	addr := loopback(port)
	s.NameServer = s.add(&Server{
		Name:    "rocketmq-namesrv",
		Addr:    addr,
		logFile: filepath.Join(s.dir, "namesrv.log"),
		command: javaCommand(dir, "org.apache.rocketmq.namesrv.NamesrvStartup", conf, "-Xms128m", "-Xmx256m"),
		ready: func(ctx context.Context) error {
			_, _, err := remotingCall(ctx, addr, codeClusterInfo, nil)
			return err
		},
	})
	return s.NameServer.Start(ctx)
}

// javaHome makes the folder that stands in for ROCKETMQ_HOME, the user's home
// (logs) and the temporary folder (each start unpacks a native library there).
func (s *Stack) javaHome(name string) (string, error) {
	dir, err := s.folder(name)
	if err != nil {
		return "", err
	}
	for _, sub := range []string{"conf", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func javaCommand(home, class, conf string, memory ...string) func() *exec.Cmd {
	args := append([]string{"-Duser.home=" + home, "-Djava.io.tmpdir=" + filepath.Join(home, "tmp")}, memory...)
	args = append(args, "-cp", filepath.Join(rocketmqLib(), "*"), class, "-c", conf)
	return func() *exec.Cmd {
		cmd := exec.Command(find("java"), args...)
		cmd.Env = append(os.Environ(), "ROCKETMQ_HOME="+home, "NAMESRV_ADDR=")
		return cmd
	}
}

func dialable(ctx context.Context, addr string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
