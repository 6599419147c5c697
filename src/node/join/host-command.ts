import type { HubRunner, WrittenFile } from './hub-files.ts'
import type { NodeFiles } from './node-files.ts'
import { imageMain, imageRuntime } from './static-pod.ts'

/** Where the command goes: the first whose folder can be written is the one. */
export const hostCommandPaths: readonly string[] = ['/usr/local/bin/nodehub', '/opt/bin/nodehub']

/** Where packages put theirs. */
const packagedCommand = '/usr/bin/nodehub'

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

/** The file of the command; none where systemd runs the hub, or where there is no path for it. */
export const hostCommandFiles = (
  path: string | undefined,
  rootDir: string,
  runBy: HubRunner,
): readonly WrittenFile[] =>
  path === undefined || 'systemd' in runBy
    ? []
    : [{ path, mode: 0o755, content: hostCommand(rootDir, runBy.staticPod) }]

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * The command `nodehub` of a host whose hub is a static pod. Of the host it takes a POSIX shell and
 * nsenter, which a kubelet's host has, and no client of the container runtime. `staticPod`: the
 * manifest of the hub.
 */
export const hostCommand = (rootDir: string, staticPod: string): string => `#!/bin/sh
# Runs nodehub of the hub's image for this host, in the container of the hub. docs/install.md lists
# its limits. Written by nodehub join, and removed by nodehub leave.
hub=${quoted(staticPod)}
cache=${quoted(`${rootDir}/cache`)}
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

elsewhere=$(sed -n "/^[ \\"'-]*--disk-cache-path=/{
  s///
  s/[\\"',]* *$//
  p
}" "$hub" 2>/dev/null | tail -n 1)
lock=\${elsewhere:-$cache}/lock.db
# The process in a container of the image that has this file open. The names of open files come from
# the kernel, which asks no file system: one on a network that is down would not answer. Files of
# that name are compared by what they are, as a container of others may have one; only root can open
# this one.
container=$(ls -ln /proc/[0-9]*/fd 2>/dev/null |
  sed -n -e '/^\\/proc\\/[0-9]*\\/fd:$/h' -e '/ -> .*\\/lock.db/{
    s/^[^>]* \\([0-9]*\\) -> .*/\\1/
    G
    s/^\\([0-9]*\\)\\n\\(.*\\):$/\\2\\/\\1/p
  }' |
  while read -r open; do
    process=\${open%/fd/*}
    [ "$open" -ef "$lock" ] && [ -e "$process/root${imageMain}" ] || continue
    echo "\${process#/proc/}"
    break
  done)
if [ -z "$container" ]; then
  last=$(ls -t "$logs"/*_nodehub-*/nodehub/*.log 2>/dev/null | head -n 1)
  say "no hub runs here, and its last lines are in \${last:-its log}; docs/install.md runs the image without it"
  exit 2
fi

# The operator's settings for other programs of Node.
unset NODE_OPTIONS NODE_EXTRA_CA_CERTS

# Without the memory limit, the seccomp profile and the dropped capabilities of the container.
node=$(tr '\\0' '\\n' <"/proc/$container/environ" | sed -n 's/^NODE_NAME=//p')
NODE_NAME=\${NODE_NAME:-$node} NODEHUB_HOST_ROOT=/proc/self/fd/3 NODEHUB_HOST_FOLDER=$(pwd -P) \\
  exec nsenter -t "$container" -m -p ${imageRuntime} --disable-sigusr1 ${imageMain} "$@" 3</
`
