package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/headgate-go/headgate/cmd/headgate/edge"
)

// completion prints a script for a shell. It names commands and the edge's flags; files
// are completed by the shell.
func completion(args []string, stdout, _ io.Writer) error {
	words := []string{"edge"}
	for _, c := range commands() {
		words = append(words, c.name)
	}
	shell := strings.Join(args, " ")
	script, ok := shells[shell]
	if !ok {
		return fmt.Errorf("no script for %q; there are: bash, zsh, fish", shell)
	}
	all, flags := strings.Join(words, " "), strings.Join(edge.Flags(), " ")
	_, err := io.WriteString(stdout, strings.NewReplacer("@WORDS@", all, "@FLAGS@", flags).Replace(script))
	return err
}

var shells = map[string]string{
	"bash": `_headgate() {
	local word="${COMP_WORDS[COMP_CWORD]}"
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "@WORDS@" -- "$word"))
	elif [[ "$word" == -* ]]; then
		COMPREPLY=($(compgen -W "@FLAGS@" -- "$word"))
	else
		COMPREPLY=($(compgen -f -- "$word"))
	fi
}
complete -F _headgate headgate
`,
	"zsh": `#compdef headgate
_headgate() {
	if (( CURRENT == 2 )); then
		compadd -- @WORDS@
	elif [[ "$PREFIX" == -* ]]; then
		compadd -- @FLAGS@
	else
		_files
	fi
}
compdef _headgate headgate
`,
	"fish": `complete -c headgate -n __fish_use_subcommand -f -a "@WORDS@"
for flag in @FLAGS@
	complete -c headgate -n "__fish_seen_subcommand_from edge check" -o (string trim -l -c - -- $flag)
end
`,
}
