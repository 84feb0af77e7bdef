// hashPassword turns a password into the line that a users file needs.

package cli

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxPassword bounds a password: a client can send no more before it is authenticated.
const maxPassword = 512

// hashPassword reads the password from standard input, where no other user of the
// machine can see it: typed twice at a terminal, else the first line.
func (a *App) hashPassword(args []string) error {
	quick := len(args) == 1 && args[0] == "--sha256"
	if len(args) > 0 && !quick {
		return fmt.Errorf("hash-password takes --sha256 or nothing, and the password from standard input%w", usage{})
	}
	password, err := a.readPassword()
	if err != nil {
		return err
	}
	if password == "" || len(password) > maxPassword {
		return fmt.Errorf("the password has %d bytes, allowed are 1 to %d", len(password), maxPassword)
	}
	if quick {
		return a.print(fmt.Sprintf("password-sha256 = \"%x\"\n", sha256.Sum256([]byte(password))))
	}
	return a.print(fmt.Sprintf("password-argon2id = %q\n", a.HashPassword(password)))
}

func (a *App) readPassword() (string, error) {
	file, isFile := a.In.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(a.In, maxPassword+2)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var typed [2]string
	for i, prompt := range []string{"password: ", "again: "} {
		fmt.Fprint(a.Err, prompt)
		text, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(a.Err)
		if err != nil {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		typed[i] = string(text)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ; try again")
	}
	return typed[0], nil
}
