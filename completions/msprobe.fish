# SPDX-License-Identifier: Apache-2.0
# fish completion for msprobe: the program itself knows its commands and options.
function __msprobe_complete
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    set -l lines ($words[1] __complete fish -- $words[2..-1] "$token" 2>/dev/null)
    set -l lead (string match -r '^-[^=]*=' -- "$token"; or echo '')
    set -l path (string replace -r '^-[^=]*=' '' -- "$token")
    switch "$lines[1]"
        case :files
            printf '%s\n' $lead(__fish_complete_path "$path")
        case :dirs
            printf '%s\n' $lead(__fish_complete_directories "$path")
        case '*'
            printf '%s\n' $lines
    end
end
complete -c msprobe -f -a '(__msprobe_complete)'
