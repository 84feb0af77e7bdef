package main

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestRESP_ReadsEveryKindOfReply(t *testing.T) {
	in := "+OK\r\n-ERR no\r\n:-7\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*2\r\n$1\r\nx\r\n:3\r\n"
	c := &respConn{in: bufio.NewReader(strings.NewReader(in))}
	for _, want := range []reply{
		{kind: '+', text: "OK"}, {kind: '-', text: "ERR no"}, {kind: ':', number: -7},
		{kind: '$', text: "a\r\nbc"}, {kind: '$'}, {kind: '_'}, {kind: '_'},
		{kind: '*', items: []reply{{kind: '$', text: "x"}, {kind: ':', number: 3}}},
	} {
		if got, err := c.read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := c.read(); err == nil {
		t.Error("the end of the connection is no reply")
	}
}

func TestRESP_QueuesCommandsAsArrays(t *testing.T) {
	c := &respConn{}
	c.queue("DLOCK", "a b")
	c.queue("PING")
	if got, want := string(c.out), "*2\r\n$5\r\nDLOCK\r\n$3\r\na b\r\n*1\r\n$4\r\nPING\r\n"; got != want {
		t.Errorf("queued %q, want %q", got, want)
	}
}
