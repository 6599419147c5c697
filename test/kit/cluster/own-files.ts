import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { Daemon } from './daemon.ts'
import { findBinaries } from './binaries.ts'
import type { Workspace } from './workspace.ts'

/** What a node has of its own below `/etc`, `/var/lib`, `/var/log` and `/usr/local/bin`. */
export interface OwnFiles {
  /** Its root, as it is reached from outside. */
  readonly root: string
  /** Flags of nsenter that lead there. */
  readonly namespaces: readonly string[]
  /** Paths of what the node has written, and of what it has removed. */
  readonly written: () => readonly string[]
}

/**
 * Why no node can have files of its own here, as the reason of a skipped test; `undefined` if one
 * can.
 */
export function noOwnFiles(): string | undefined {
  const found = findBinaries(['unshare', 'mount'])
  if ('missing' in found) return `no files for a node: ${found.missing}`
  const probe = `
mount -t tmpfs probe /mnt
mkdir /mnt/upper /mnt/work
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work probe /etc`
  const { status } = spawnSync(found.paths.unshare, ['--mount', '--uts', 'sh', '-ec', probe])
  return status === 0 ? undefined : 'no files for a node: no overlay can be mounted here'
}

/**
 * Lays a file system in memory over these folders, so that all else in them is this
 * machine's, and removes what would make the node more than a bare one. Of systemd it has what a
 * test puts there, and of changes its own lock.
 */
const script = `
mount -t tmpfs node "$0"
for path in etc var/lib var/log usr/local/bin; do
  mkdir -p "$0/$path" "$0/work/$path"
  mount -t overlay -o "lowerdir=/$path,upperdir=$0/$path,workdir=$0/work/$path" node "/$path"
done
for path in /run/systemd /run/nodehub; do
  mkdir -p $path
  mount -t tmpfs node $path
done
rm -rf /etc/kubernetes /etc/cni /etc/containerd /var/lib/kubelet /var/lib/nodehub /usr/local/bin/nodehub
echo "$1" > /proc/sys/kernel/hostname
touch "$0/made"
while :; do sleep 3600; done
`

/**
 * Gives a node files and a host name of its own, in namespaces that last as long as a process in
 * them.
 */
export async function startOwnFiles(workspace: Workspace, hostName: string): Promise<OwnFiles> {
  const found = findBinaries(['unshare'])
  if ('missing' in found) throw new Error(found.missing)
  const folder = workspace.file('own-files')
  mkdirSync(folder)
  const root = (id: number): string => `/proc/${id}/root`
  const holder: Daemon = new Daemon(workspace, 'own-files', {
    command: found.paths.unshare,
    args: ['--mount', '--uts', 'sh', '-ec', script, folder, hostName],
    ready: () => Promise.resolve(existsSync(`${root(holder.id)}${folder}/made`)),
  })
  const { id } = await holder.start()
  return {
    root: root(id),
    namespaces: [`--mount=/proc/${id}/ns/mnt`, `--uts=/proc/${id}/ns/uts`],
    written: () =>
      ['etc', 'var/lib', 'usr/local/bin'].flatMap((path) =>
        readdirSync(`${root(id)}${folder}/${path}`, { recursive: true, encoding: 'utf8' })
          .map((name) => `/${path}/${name}`)
          .toSorted(),
      ),
  }
}
