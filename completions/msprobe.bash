# SPDX-License-Identifier: Apache-2.0
# bash completion for msprobe: the program itself knows its commands and options.
_msprobe() {
  local current=${COMP_WORDS[COMP_CWORD]}
  [[ $current == = ]] && current=
  mapfile -t COMPREPLY < <("${1/#\~\//$HOME/}" __complete bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  # Names of metrics have blanks in them.
  local i
  for i in "${!COMPREPLY[@]}"; do
    [[ ${COMPREPLY[i]} != *' '* ]] || printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"
  done
  case ${COMPREPLY[0]-} in
    :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    :dirs) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
  esac
}
complete -F _msprobe msprobe
