import type { NodeFiles } from './node-files.ts'
import { commandPod, imageMain, imageRuntime } from './static-pod.ts'

/** Where the command goes: the first whose folder can be written is the one. */
export const hostCommandPaths: readonly string[] = ['/usr/local/bin/nodehub', '/opt/bin/nodehub']

/** Where packages put theirs. */
const packagedCommand = '/usr/bin/nodehub'

export interface HostCommand {
  readonly rootDir: string
  /** The manifest of the hub, beside which the command puts its own. */
  readonly staticPod: string
  readonly image: string
}

/**
 * Where `nodehub` can be written for the host of a static pod; `undefined`: there is one already,
 * no folder of PATH takes it, or the root is that of the image, which ends with its container.
 */
export function hostCommandPath(files: NodeFiles, root: string): string | undefined {
  if (isRootOfImage(root)) return undefined
  if ([packagedCommand, ...hostCommandPaths].some((path) => files.isThere(path))) return undefined
  return hostCommandPaths.find((path) => files.canWrite(path))
}

/** Whether this process is one of the image, and `/` its container's. */
export const isRootOfImage = (root: string): boolean =>
  root === '/' && process.argv[1] === imageMain

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * The values that are known when the command runs, by their place in the pod, as the shell has
 * them.
 */
const known: Readonly<Record<string, string>> = {
  '%NAME%': '"$name"',
  '%IMAGE%': '"${now:-$image}"',
}

/**
 * The command `nodehub` of a host whose hub is a static pod. Of the host it takes a POSIX shell and
 * nsenter, which a kubelet's host has, and no client of the container runtime.
 */
export function hostCommand({ rootDir, staticPod, image }: HostCommand): string {
  const folder = staticPod.slice(0, staticPod.lastIndexOf('/'))
  const pod = JSON.stringify(
    commandPod({ name: '%NAME%', image: '%IMAGE%', rootDir, lock: `${rootDir}/%NAME%.lock` }),
    undefined,
    2,
  )
  const pieces = pod.split(/(%NAME%|%IMAGE%)/).map((piece) => known[piece] ?? quoted(piece))
  return `#!/bin/sh
# Runs nodehub of the hub's image for this host: in the container of the hub, or, while no hub runs,
# in one that the kubelet starts for it. docs/install.md lists its limits. Written by
# nodehub join, and removed by nodehub leave.
hub=${quoted(staticPod)}
cache=${quoted(`${rootDir}/cache`)}
state=${quoted(rootDir)}
# Of each command its own: a kubelet takes its time before it starts a pod of the same name again,
# and the container of another ends with that one.
name=nodehub-command-$$
# By it the command finds the container that the kubelet has started.
lock=$state/$name.lock
folder=${quoted(folder)}
manifest=$folder/$name.json
image=${quoted(image)}
logs=/var/log/pods

say() {
  echo "nodehub: $*" >&2
}

case \${1-} in
join | leave | adopt | install | start)
  say "$1 changes the host, and this command runs in a container: see docs/install.md"
  exit 2
  ;;
esac
if [ "$(id -u)" != 0 ]; then
  say 'only root can enter the container of the hub'
  exit 2
fi

# Prints the process in a container of the image that has this file open; commands such as this one
# are none, as their container may end with them. The names of open files come from the kernel,
# which asks no file system: one on a network that is down would not answer. Files of that name are
# compared by what they are, as a container of others may have one; only root can open this one.
holder() {
  [ -e "$1" ] || return 0
  ls -ln /proc/[0-9]*/fd 2>/dev/null |
    sed -n -e '/^\\/proc\\/[0-9]*\\/fd:$/h' -e "/ -> .*\\/\${1##*/}$/{
      s/^[^>]* \\([0-9]*\\) -> .*/\\1/
      G
      s/^\\([0-9]*\\)\\n\\(.*\\):$/\\2\\/\\1/p
    }" |
    while read -r open; do
      process=\${open%/fd/*}
      [ "$open" -ef "$1" ] && [ -e "$process/root${imageMain}" ] || continue
      tr '\\0' '\\n' <"$process/environ" | grep -q '^NODEHUB_HOST_ROOT=' && continue
      echo "\${process#/proc/}"
      break
    done
}

# The operator's settings for other programs of Node.
unset NODE_OPTIONS NODE_EXTRA_CA_CERTS

# Without the memory limit, the seccomp profile and the dropped capabilities of the container.
run_in() {
  into=$1
  shift
  node=$(tr '\\0' '\\n' <"/proc/$into/environ" | sed -n 's/^NODE_NAME=//p')
  NODE_NAME=\${NODE_NAME:-$node} NODEHUB_HOST_ROOT=/proc/self/fd/3 NODEHUB_HOST_FOLDER=$(pwd -P) \\
    nsenter -t "$into" -m -p ${imageRuntime} --disable-sigusr1 ${imageMain} "$@" 3</
}

# Of commands that were killed.
for old in "$folder"/nodehub-command-*.json; do
  writer=\${old##*-}
  kill -0 "\${writer%.json}" 2>/dev/null || rm -f "$old" "$state/nodehub-command-\${writer%.json}.lock"
done

elsewhere=$(sed -n "/^[ \\"'-]*--disk-cache-path=/{
  s///
  s/[\\"',]* *$//
  p
}" "$hub" 2>/dev/null | tail -n 1)
container=$(holder "\${elsewhere:-$cache}/lock.db")
if [ -n "$container" ]; then
  run_in "$container" "$@"
  exit
fi

last=$(ls -t "$logs"/*_nodehub-*/nodehub/*.log 2>/dev/null | head -n 1)
say "no hub runs here, and its last lines are in \${last:-its log}; the kubelet starts a container for this command"
now=$(sed -n 's/^[ -]*image: *//p' "$hub" 2>/dev/null | head -n 1 | tr -d "\\"'")
trap 'rm -f "$manifest" "$folder/.$name" "$lock"' EXIT
trap 'exit 130' INT TERM HUP
printf '%s' ${pieces.join(' ')} >"$folder/.$name" &&
  mv "$folder/.$name" "$manifest" || exit 2
waited=0
while container=$(holder "$lock"); [ -z "$container" ]; do
  if [ $waited -ge 120 ]; then
    say "the kubelet has started no container of \${now:-$image} within $waited s: see journalctl -u kubelet"
    exit 2
  fi
  sleep 1
  waited=$((waited + 1))
done
run_in "$container" "$@"
`
}
